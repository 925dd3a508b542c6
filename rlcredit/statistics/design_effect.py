"""What clustering costs: outcomes of one prompt resemble each other."""


def design_effect(group_size: int, correlation: float) -> float:
    r"""Return by how much grouped outcomes must outnumber independent ones.

    .. math:: 1 + (G - 1) \rho

    A correlation of zero gives 1; one of 1 gives G, each group then being worth one outcome.

    Args:
        group_size: G, outcomes per prompt.
        correlation: within prompts, see ``intraclass_correlation``.

    References:
        Kish, 1965, Survey Sampling, chapter 5.

    Example:
        >>> [design_effect(16, correlation) for correlation in (0.1, 0.3, 0.5)]
        [2.5, 5.5, 8.5]

    """
    return 1 + (group_size - 1) * correlation
