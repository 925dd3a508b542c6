"""Kinds of budgets of tokens, the counts that add up to each, and the marks at which runs are evaluated."""

from collections.abc import Mapping

BUDGET_KINDS = {
    "decoded_tokens": ("decoded",),
    "backward_tokens": ("backward",),
    "rollout_tokens": ("decoded", "prefill"),
}
"""Counts that add up to each kind of budget; rollouts are decoded and read, and floating-point operations could only be
estimated."""


def sum_budget_counts(budget: str, counts: Mapping[str, float]) -> float:
    """Return the tokens that count for a kind of budget.

    Example:
        >>> sum_budget_counts("rollout_tokens", {"decoded": 120, "prefill": 16, "backward": 90})
        136

    """
    return sum(counts[kind] for kind in BUDGET_KINDS[budget])


HALVINGS_COUNT = 4
"""Number of times that a budget is halved for its marks, so that the first one comes early."""


def list_budget_marks(budget: int, evaluations: int | None = None) -> list[int]:
    """Return the tokens after which a run is evaluated: a 16th, an eighth, a quarter, half and all of its budget.

    Args:
        budget: Tokens of the run.
        evaluations: Number of evaluations at equal shares instead.

    Example:
        >>> list_budget_marks(1000), list_budget_marks(1000, evaluations=3)
        ([63, 125, 250, 500, 1000], [334, 667, 1000])

    """
    if evaluations is None:
        return sorted({-(-budget // 2**halvings) for halvings in range(HALVINGS_COUNT + 1)})
    return [-(-budget * share // evaluations) for share in range(1, evaluations + 1)]
