"""Student's t for paired differences and Welch's for two independent arms, with everything a report prints."""

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy import special

from rlcredit.statistics.finite_sample import finite_sample
from rlcredit.statistics.interval import Interval


@dataclass(frozen=True)
class TTest:
    """Hold a difference of means, how well it is known, and the test that it is zero.

    Args:
        difference: of the means, in the unit of the values.
        standard_error: of the difference, same unit.
        statistic: the difference over its standard error.
        df: degrees of freedom, a fraction in Welch's test.
        p: two-sided.
        interval: of the difference.

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
        difference: of two means.
        standard_error: of the difference, at least zero.
        df: degrees of freedom.
        level: of the interval.

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


def paired_t(differences: ArrayLike, level: float = 0.95) -> TTest:
    r"""Test the mean of paired differences.

    .. math:: t = \frac{\bar d}{s_d / \sqrt n}, \qquad \nu = n - 1

    Use it where both arms share seed, data order and questions, so that what a seed does to both cancels.

    Args:
        differences: arm minus baseline for each common seed, shape ``(n,)``, n at least two.
        level: of the interval.

    Example:
        >>> test = paired_t([1.0, 2.0, 3.0])  # mean 2, standard error 1 / sqrt(3)
        >>> round(test.statistic, 4), test.df, round(test.p, 4)
        (3.4641, 2, 0.0742)

    """
    row = finite_sample(differences, fewest=2, purpose="A paired t")
    return t_test(float(row.mean()), float(row.std(ddof=1)) / math.sqrt(len(row)), len(row) - 1, level)


def welch_t(arm: ArrayLike, baseline: ArrayLike, level: float = 0.95) -> TTest:
    r"""Test the difference of two independent means without assuming equal variances.

    .. math::
        t = \frac{\bar x - \bar y}{\sqrt{v_x + v_y}}, \qquad
        \nu = \frac{(v_x + v_y)^2}{v_x^2 / (n_x - 1) + v_y^2 / (n_y - 1)}, \qquad v = s^2 / n

    The degrees of freedom lie between the smaller arm's and both arms' together; Welch, 1947, doi:10.2307/2332510.

    Args:
        arm: one value per run, shape ``(n_x,)``, at least two.
        baseline: likewise, shape ``(n_y,)``; the numbers of runs may differ.
        level: of the interval.

    Example:
        >>> test = welch_t([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])  # equal spread and size: 2 + 2 degrees of freedom
        >>> round(test.statistic, 4), round(test.df, 4), round(test.p, 4)
        (2.4495, 4.0, 0.0705)

    """
    first, second = (finite_sample(runs, fewest=2, purpose="Welch's t") for runs in (arm, baseline))
    dfs = [len(runs) - 1 for runs in (first, second)]
    parts = [float(runs.var(ddof=1)) / len(runs) for runs in (first, second)]
    variance = sum(parts)
    df = variance**2 / sum(part**2 / df for part, df in zip(parts, dfs, strict=True)) if variance > 0 else sum(dfs)
    return t_test(float(first.mean() - second.mean()), math.sqrt(variance), df, level)
