"""Student's t for paired differences and Welch's for two independent conditions, with everything a report prints."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy import special

from rlcredit.statistics.finite_sample import finite_sample
from rlcredit.statistics.intervals import Interval


@dataclass(frozen=True)
class TTest:
    """Hold a difference of means, its uncertainty, and the test that it is zero.

    Args:
        difference: Difference of the means, in the unit of the values.
        standard_error: Standard error of the difference, same unit.
        statistic: Difference over its standard error.
        df: Degrees of freedom, a fraction in Welch's test.
        p: Two-sided p-value.
        interval: Interval of the difference.

    """

    difference: float
    standard_error: float
    statistic: float
    df: float
    p: float
    interval: Interval


def t_test(difference: float, standard_error: float, df: float, level: float = 0.95) -> TTest:
    """Test a difference whose standard error is known with some degrees of freedom.

    Without any spread between runs the statistic is its limit: infinite, or zero where the difference is zero as well.

    Args:
        difference: Difference of two means.
        standard_error: Standard error of the difference, at least zero.
        df: Degrees of freedom.
        level: Confidence level of the interval.

    Example:
        >>> test = t_test(2.0, 1.0, df=4)
        >>> round(test.p, 4), round(test.interval.low, 4)  # 2 - 2.7764
        (0.1161, -0.7764)

    """
    zero = 0.0 if difference == 0 else math.copysign(math.inf, difference)
    statistic = difference / standard_error if standard_error > 0 else zero
    reach = float(special.stdtrit(df, (1 + level) / 2)) * standard_error
    p = float(2 * special.stdtr(df, -abs(statistic)))
    return TTest(difference, standard_error, statistic, df, p, Interval(difference - reach, difference + reach, level))


def paired_t_test(differences: ArrayLike, level: float = 0.95) -> TTest:
    r"""Test the mean of paired differences.

    .. math:: t = \frac{\bar d}{s_d / \sqrt n}, \qquad \nu = n - 1

    Use it where both conditions share seed, data order and questions, so that what a seed does to both cancels.

    Args:
        differences: Condition minus baseline for each common seed, shape ``(n,)``, n at least two.
        level: Confidence level of the interval.

    Example:
        >>> test = paired_t_test([1.0, 2.0, 3.0])  # mean 2, standard error 1 / sqrt(3)
        >>> round(test.statistic, 4), test.df, round(test.p, 4)
        (3.4641, 2, 0.0742)

    """
    row = finite_sample(differences, fewest=2, purpose="A paired t")
    return t_test(float(row.mean()), float(row.std(ddof=1)) / math.sqrt(len(row)), len(row) - 1, level)


def welch_t_test(condition: ArrayLike, baseline: ArrayLike, level: float = 0.95) -> TTest:
    r"""Test the difference of two independent means without assuming equal variances.

    .. math::
        t = \frac{\bar x - \bar y}{\sqrt{v_x + v_y}}, \qquad
        \nu = \frac{(v_x + v_y)^2}{v_x^2 / (n_x - 1) + v_y^2 / (n_y - 1)}, \qquad v = s^2 / n

    The degrees of freedom lie between those of the smaller sample and of both together (Welch, 1947,
    doi:10.2307/2332510).

    Args:
        condition: One value per run of the condition, shape ``(n_x,)``, at least two.
        baseline: One value per run of the baseline, shape ``(n_y,)``, at least two; the numbers of runs may differ.
        level: Confidence level of the interval.

    Example:
        >>> test = welch_t_test([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])  # equal spread and size: 2 + 2 degrees of freedom
        >>> round(test.statistic, 4), round(test.df, 4), round(test.p, 4)
        (2.4495, 4.0, 0.0705)

    """
    rows = [finite_sample(runs, fewest=2, purpose="Welch's t") for runs in (condition, baseline)]
    dfs = [len(row) - 1 for row in rows]
    parts = [float(row.var(ddof=1)) / len(row) for row in rows]
    difference = float(rows[0].mean() - rows[1].mean())
    return t_test(difference, math.sqrt(sum(parts)), _satterthwaite_df(parts, dfs), level)


def mean_difference_t_test(tests: Sequence[TTest], level: float = 0.95) -> TTest:
    r"""Test the mean of independent differences, each with the standard error of its own runs.

    .. math::
        t = \frac{\sum_i d_i}{\sqrt{\sum_i s_i^2}}, \qquad
        \nu = \frac{(\sum_i s_i^2)^2}{\sum_i s_i^4 / \nu_i}

    Where each is of another policy, what is said of their mean holds for these policies and not for others.
    Satterthwaite, 1946, doi:10.2307/3002019.

    Args:
        tests: Tests of the differences, one or more.
        level: Confidence level of the interval.

    Raises:
        ValueError: there are none.

    Example:
        >>> test = mean_difference_t_test([t_test(1.0, 1.0, df=4), t_test(3.0, 1.0, df=4)])
        >>> test.difference, round(test.standard_error, 4), round(test.df, 4)  # equal spread: 4 + 4 degrees of freedom
        (2.0, 0.7071, 8.0)

    """
    if not tests:
        raise ValueError("The mean of no differences is unknown. Give one test at least.")
    parts = [test.standard_error**2 for test in tests]
    df = _satterthwaite_df(parts, [test.df for test in tests])
    mean = math.fsum(test.difference for test in tests) / len(tests)
    return t_test(mean, math.sqrt(sum(parts)) / len(tests), df, level)


def _satterthwaite_df(parts: Sequence[float], dfs: Sequence[float]) -> float:
    """Return the degrees of freedom of a sum of variances, each with its own; all of them where nothing varies."""
    total = sum(parts)
    return total**2 / sum(part**2 / df for part, df in zip(parts, dfs, strict=True)) if total > 0 else sum(dfs)
