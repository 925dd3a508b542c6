"""Hedges' g: a mean of paired differences in their standard deviations."""

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy import special

from rlcredit.statistics.finite_sample import finite_sample
from rlcredit.statistics.intervals import Interval


@dataclass(frozen=True)
class StandardizedEffect:
    """Hold a difference in standard deviations.

    Args:
        g: Hedges' unbiased estimate, in standard deviations.
        interval: Interval of the true effect, in standard deviations.

    """

    g: float
    interval: Interval


def paired_hedges_g(differences: ArrayLike, level: float = 0.95) -> StandardizedEffect:
    r"""Return the mean of paired differences over the standard deviation of the differences, free of bias.

    .. math:: g = J(\nu) \frac{\bar d}{s_d}, \quad
        J(\nu) = \frac{\Gamma(\nu/2)}{\sqrt{\nu/2}\,\Gamma((\nu-1)/2)}, \quad \nu = n - 1

    Without J it is Cohen's d, which overstates the effect of few pairs. Under normal differences d over its scale is
    noncentral t, and the interval inverts that distribution exactly; its ends are of the true effect, and so take no J
    (Steiger and Fouladi, 1997; Hedges, 1981, doi:10.2307/1164588). The paired t and its power use the same
    standardiser. Where seeds move both conditions together, differences spread less than runs do: never compare it with
    a g of independent runs, which is the smaller one.

    Args:
        differences: Condition minus baseline for each common seed, shape ``(n,)``, at least two.
        level: Confidence level of the interval.

    Raises:
        ValueError: all differences are equal.

    Example:
        >>> round(paired_hedges_g([1.0, 2.0, 3.0]).g, 3)  # d = 2, J(2) = 0.564
        1.128

    """
    row = finite_sample(differences, fewest=2, purpose="Hedges' g")
    difference, deviation, df = float(row.mean()), float(row.std(ddof=1)), len(row) - 1
    if deviation == 0:
        raise ValueError(f"Hedges' g divides {difference} by the spread of runs, which is 0. Report the difference.")
    d, scale = difference / deviation, math.sqrt(1 / len(row))
    unbiasing = math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2) if df > 1 else 0.0
    low, high = (scale * float(special.nctdtrinc(df, (1 + sign * level) / 2, d / scale)) for sign in (1, -1))
    return StandardizedEffect(unbiasing * d, Interval(low, high, level))
