"""Power of comparing two proportions of independent generations."""

import math

from scipy import optimize, stats


def generations_needed(first: float, second: float, power: float = 0.8, alpha: float = 0.05) -> int:
    r"""Return how many independent generations per arm tell two success rates apart.

    .. math:: n = \left(\frac{z_{1-\alpha/2} \sqrt{2 \bar p \bar q} + z_{power} \sqrt{p_1 q_1 + p_2 q_2}}
        {p_1 - p_2}\right)^2

    Unpaired, and for independent generations only: those of one prompt resemble each other, so multiply by
    ``design_effect``. It counts generations of two fixed models. A claim about a method is about runs, whose number is
    ``t_power.seeds_needed``, and no number of generations makes up for runs.

    Args:
        first: success rate of one arm, in (0, 1).
        second: of the other; not the same.
        power: chance of finding the difference.
        alpha: of the two-sided test.

    Returns:
        Generations of each arm, rounded up (Fleiss, Levin and Paik, 2003, doi:10.1002/0471445428, chapter 4).

    Raises:
        ValueError: equal rates.

    Example:
        >>> generations_needed(0.5, 0.51), generations_needed(0.5, 0.55)
        (39240, 1565)

    """
    if first == second:
        raise ValueError(f"No number of generations tells two rates of {first} apart. State the difference to find.")
    return math.ceil(_unrounded_generations(first, second, power, alpha))


def detectable_difference(base: float, generations: int, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the smallest rise of a success rate that so many generations per arm can show.

    The inverse of ``generations_needed``, for independent generations: divide theirs by ``design_effect`` first.

    Args:
        base: success rate of the baseline, in (0, 1).
        generations: per arm.
        power: chance of finding the rise.
        alpha: of the two-sided test.

    Returns:
        In the unit of the rate: 0.01 is one percentage point.

    Raises:
        ValueError: too few generations to show even a rise to 1.

    Example:
        >>> round(detectable_difference(0.34, generations=23_000), 4)
        0.0124

    """
    room = 1 - base
    if generations <= _unrounded_generations(base, 1.0, power, alpha):
        raise ValueError(f"{generations} generations cannot tell a rate of {base} from 1. Take more per arm.")
    root = optimize.root_scalar(
        lambda rise: _unrounded_generations(base, base + rise, power, alpha) - generations, bracket=(1e-9 * room, room)
    )
    return float(root.root)


def _unrounded_generations(first: float, second: float, power: float, alpha: float) -> float:
    """Return the generations per arm, not rounded."""
    pooled = (first + second) / 2
    under_null = stats.norm.isf(alpha / 2) * math.sqrt(2 * pooled * (1 - pooled))
    under_effect = stats.norm.ppf(power) * math.sqrt(first * (1 - first) + second * (1 - second))
    return float((under_null + under_effect) / (first - second)) ** 2
