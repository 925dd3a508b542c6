"""Power of t tests over seeds: the number of seeds needed, and the effect that a number can detect."""

import math
from bisect import bisect_left

from scipy import optimize, special

MOST_SEEDS = 10_000_000


def t_test_power(effect: float, seeds: int, conditions: int = 2, alpha: float = 0.05) -> float:
    r"""Return the chance that a two-sided t test finds an effect.

    .. math:: P(|T_{\nu, \delta}| > t_{\nu, 1 - \alpha/2}), \qquad \nu = a (n - 1), \quad \delta = d \sqrt{n / a}

    Both tails of the noncentral t; an effect of zero is found with chance alpha (Cohen, 1988,
    doi:10.4324/9780203771587, chapter 2).

    Args:
        effect: Effect d, the difference over the standard deviation: of runs for two independent conditions, of
            differences for pairs.
        seeds: Number of seeds per condition, n, at least two.
        conditions: Number of conditions a, two for independent ones, one for paired differences.
        alpha: Significance level of the test.

    Example:
        >>> round(t_test_power(1.5, seeds=3), 2), round(t_test_power(1.5, seeds=3, conditions=1), 2)
        (0.29, 0.32)

    """
    if seeds < 2:
        raise ValueError(
            f"A t test needs at least 2 seeds per condition, got {seeds}. One run says nothing of the spread."
        )
    df, shift = conditions * (seeds - 1), effect * math.sqrt(seeds / conditions)
    critical = special.stdtrit(df, 1 - alpha / 2)
    miss_rate = special.ncfdtr(1, df, shift**2, critical**2)  # t^2 is F: one number for both tails
    return 1.0 if math.isnan(miss_rate) else float(1 - miss_rate)  # not a number where it is below 1e-190


def seeds_needed(effect: float, power: float = 0.8, conditions: int = 2, alpha: float = 0.05) -> int:
    """Return the least number of seeds per condition whose t test detects an effect with the given power.

    Args:
        effect: Difference over the standard deviation: of runs for two conditions, of differences for pairs; not zero.
        power: Chance of finding the effect.
        conditions: Number of conditions, two for independent ones, one for paired differences.
        alpha: Significance level of the two-sided test.

    Raises:
        ValueError: an effect too small for any number of runs.

    Example:
        >>> [seeds_needed(effect) for effect in (0.5, 0.8, 1.0, 1.5, 2.0, 3.0)]
        [64, 26, 17, 9, 6, 4]

    """
    candidates = range(2, MOST_SEEDS)
    index = bisect_left(candidates, power, key=lambda seeds: t_test_power(effect, seeds, conditions, alpha))
    if index == len(candidates):
        raise ValueError(f"No number of seeds up to {MOST_SEEDS} finds an effect of {effect}. Ask for a larger one.")
    return candidates[index]


def detectable_effect(seeds: int, power: float = 0.8, conditions: int = 2, alpha: float = 0.05) -> float:
    """Return the smallest effect that this many seeds detect with the given power, in standard deviations.

    Multiply by the standard deviation of runs (of differences, for pairs) to have it in the unit of the metric.

    Args:
        seeds: Number of seeds per condition, at least two.
        power: Chance of finding the effect, above alpha.
        conditions: Number of conditions, two for independent ones, one for paired differences.
        alpha: Significance level of the two-sided test.

    Raises:
        ValueError: a power that an effect of zero has already.

    Example:
        >>> round(detectable_effect(3), 2), round(detectable_effect(8, conditions=1), 2)
        (3.07, 1.16)

    """
    if not alpha < power < 1:
        raise ValueError(f"A detectable effect needs a power between alpha = {alpha} and 1, got {power}. Try 0.8.")
    largest = 1.0
    while t_test_power(largest, seeds, conditions, alpha) < power:
        largest *= 2
    root = optimize.root_scalar(
        lambda effect: t_test_power(effect, seeds, conditions, alpha) - power, bracket=(0.0, largest)
    )
    return float(root.root)
