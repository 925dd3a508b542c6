"""Interval of any estimate by leaving out one of its observations at a time."""

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rlcredit.statistics.interval import Interval


def jackknife_interval(estimate: float, without_one: NDArray[np.float64], level: float = 0.95) -> Interval:
    r"""Return an interval from the estimate without each of n observations.

    .. math:: \hat\theta \pm t_{n-1} \sqrt{\tfrac{n-1}{n} \sum_i (\hat\theta_{(i)} - \bar\theta_{(\cdot)})^2}

    Args:
        estimate: over all observations.
        without_one: with each of them left out, shape ``(n,)``.
        level: of the interval.

    Example:
        >>> interval = jackknife_interval(2.0, np.array([2.5, 2.0, 1.5]))  # the mean of 1, 2 and 3
        >>> round(interval.low, 3), round(interval.high, 3)  # Student's interval of that mean
        (-0.484, 4.484)

    """
    number = len(without_one)
    error = np.sqrt((number - 1) * without_one.var())
    reach = float(special.stdtrit(number - 1, (1 + level) / 2) * error)
    return Interval(estimate - reach, estimate + reach, level)
