"""A ratio of two means over the same runs, such as the share of a gap that an operator closes."""

import math
from typing import NamedTuple

from numpy.typing import ArrayLike
from scipy import special

from rlcredit.statistics.finite_sample import finite_sample
from rlcredit.statistics.intervals import Interval


class RatioEstimate(NamedTuple):
    """Hold a ratio of means and its interval; infinite ends say that the denominator may be zero."""

    value: float
    interval: Interval


def ratio_of_means(numerators: ArrayLike, denominators: ArrayLike, level: float = 0.95) -> RatioEstimate:
    r"""Return the ratio of two means that were measured on the same runs, with Fieller's interval.

    .. math:: \Big\{\rho : |\bar x - \rho \bar y| \le t_{n-1} \sqrt{(s_x^2 - 2 \rho s_{xy} + \rho^2 s_y^2) / n}\Big\}

    It holds every ratio that a paired t test of :math:`x - \rho y` does not reject, and is exact for normal values
    (Fieller, 1954, J. R. Stat. Soc. B 16, 175). Where the denominator's own test does not reject zero, no finite
    interval is exact; the whole line is returned, so that the truth is inside more often than the level says.

    Args:
        numerators: One value of the first quantity a run, shape ``(n,)``, n at least two.
        denominators: One value of the other quantity a run, in the same order, shape ``(n,)``.
        level: Confidence level of the interval.

    Raises:
        ValueError: the two are not of the same runs, or the denominators' mean is zero.

    Example:
        >>> share, (low, high, _) = ratio_of_means([1.0, 2.0, 3.0], [4.0, 4.0, 4.0])  # a paired t over four
        >>> share, round(low, 3), round(high, 3)
        (0.5, -0.121, 1.121)

    """
    x, y = (finite_sample(row, fewest=2, purpose="A ratio of means") for row in (numerators, denominators))
    if len(x) != len(y):
        raise ValueError(f"{len(x)} numerators and {len(y)} denominators are not of the same runs. Give pairs.")
    top, bottom = float(x.mean()), float(y.mean())
    if bottom == 0:
        raise ValueError("The denominators have mean zero: there is nothing to have a share of.")
    reach = float(special.stdtrit(len(x) - 1, (1 + level) / 2)) ** 2 / len(x)
    square = bottom**2 - reach * float(y.var(ddof=1))
    cross = top * bottom - reach * float((x - top) @ (y - bottom)) / (len(x) - 1)
    constant = top**2 - reach * float(x.var(ddof=1))
    if square <= 0:
        return RatioEstimate(top / bottom, Interval(-math.inf, math.inf, level))
    half = math.sqrt(max(cross**2 - square * constant, 0.0))
    return RatioEstimate(top / bottom, Interval((cross - half) / square, (cross + half) / square, level))
