"""Intervals for any estimate by the jackknife, and for a mean of shares."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rlcredit.statistics.finite_sample import finite_sample


class Interval(NamedTuple):
    """Hold the two ends of an interval and its coverage.

    Example:
        >>> low, high, level = Interval(0.5, 2.5, level=0.95)
        >>> high - low
        2.0

    """

    low: float
    high: float
    level: float


def jackknife_interval(estimate: float, without_one: NDArray[np.float64], level: float = 0.95) -> Interval:
    r"""Return an interval from the estimate without each of n observations.

    .. math:: \hat\theta \pm t_{n-1} \sqrt{\tfrac{n-1}{n} \sum_i (\hat\theta_{(i)} - \bar\theta_{(\cdot)})^2}

    Args:
        estimate: Estimate over all observations.
        without_one: Estimate with each observation left out, shape ``(n,)``.
        level: Confidence level of the interval.

    Example:
        >>> interval = jackknife_interval(2.0, np.array([2.5, 2.0, 1.5]))  # the mean of 1, 2 and 3
        >>> round(interval.low, 3), round(interval.high, 3)  # Student's interval of that mean
        (-0.484, 4.484)

    """
    number = len(without_one)
    error = np.sqrt((number - 1) * without_one.var())
    reach = float(special.stdtrit(number - 1, (1 + level) / 2) * error)
    return Interval(estimate - reach, estimate + reach, level)


def share_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    r"""Return an interval of the mean of values between 0 and 1, for new questions of the same kind.

    .. math::
        \frac{\hat p + \frac{c^2}{2 m} \pm c \sqrt{\frac{\hat p (1 - \hat p)}{m} + \frac{c^2}{4 m^2}}}{1 + c^2 / m},
        \qquad m = \frac{\hat p (1 - \hat p)}{s^2 / n}, \quad c = t_{n-1,\,(1 + level)/2}

    Wilson's interval at the effective sample size m, the number of independent yes-or-no answers that would be as
    precise (Dean and Pagano, 2015, doi:10.1093/jssam/smv024, who compare intervals of clustered proportions). If every
    question is answered once, m is n - 1, and this is Wilson's interval with a t quantile. If all values are
    equal, their spread says nothing, and m is n: unlike Student's interval or a bootstrap, it is no point there, and it
    never leaves 0 to 1.

    Args:
        values: Share per question, in [0, 1], shape ``(n,)``, at least two.
        level: Confidence level of the interval.

    Raises:
        ValueError: fewer values, a missing one, or one that is no share.

    Example:
        >>> interval = share_interval([0.0] * 30)  # no question of thirty
        >>> round(interval.low, 3), round(interval.high, 3)
        (0.0, 0.122)

    """
    row = finite_sample(values, fewest=2, purpose="An interval of accuracy")
    if row.min() < 0 or row.max() > 1:
        raise ValueError(f"An interval of accuracy needs values from 0 to 1, got {row.min():g} to {row.max():g}.")
    size, mean = len(row), float(row.mean())
    spread = mean * (1 - mean)
    effective = spread / (float(row.var(ddof=1)) / size) if np.ptp(row) > 0 else size
    square = float(special.stdtrit(size - 1, (1 + level) / 2)) ** 2 / effective
    middle, reach = mean + square / 2, math.sqrt(square * (spread + square / 4))
    low, high = (middle - reach) / (1 + square), (middle + reach) / (1 + square)
    return Interval(max(low, 0.0), min(high, 1.0), level)
