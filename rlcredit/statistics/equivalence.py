"""Equivalence by two one-sided tests (Schuirmann, 1987, doi:10.1007/BF01068419)."""

from dataclasses import dataclass

from scipy import special

from rlcredit.statistics.intervals import Interval
from rlcredit.statistics.t_test import TTest, t_test


@dataclass(frozen=True)
class EquivalenceTest:
    """Hold the test that a difference lies within a margin.

    Args:
        p: P-value of a difference at least as large as the margin; small says equivalent.
        interval: Interval of the difference at level 1 - 2 alpha; inside the margin exactly if p < alpha.
        margin: Largest difference that would not matter, in the unit of the values.

    """

    p: float
    interval: Interval
    margin: float


def equivalence_test(test: TTest, margin: float, alpha: float = 0.05) -> EquivalenceTest:
    r"""Test whether a difference is smaller than a margin, from its paired or Welch test.

    .. math:: p = \max\left\{ P(T_\nu > \frac{d + m}{se}),\; P(T_\nu < \frac{d - m}{se}) \right\}

    A large p of no difference is no evidence that there is none; this is the test that gives it. The margin is stated
    before the runs are looked at. Each one-sided test has size alpha, so both together need no correction.
    Simulated with eight runs and a true difference at the margin, 5 % at most of normal runs are called equivalent;
    of pass@1 near 0.95 over 512 questions, which is skewed, 2 to 3 % at a margin of 1.3 points, but 6 to 8 % at
    margins of 2 to 3 points: keep the margin small there.

    Args:
        test: Test of the difference: ``paired_t_test`` of differences, or ``welch_t_test`` of two independent samples.
        margin: Largest difference that would not matter, above zero, in the unit of the values.
        alpha: Significance level of each one-sided test; gives the interval its level 1 - 2 alpha.

    Raises:
        ValueError: a margin of zero or less.

    Example:
        >>> from rlcredit.statistics.t_test import t_test
        >>> result = equivalence_test(t_test(0.0, 1.0, df=4), margin=2.0)  # t = 2 on both sides
        >>> round(result.p, 4), round(result.interval.high, 4)
        (0.0581, 2.1318)

    """
    if margin <= 0:
        raise ValueError(f"Equivalence expects margin > 0, got {margin}. State the largest difference to ignore.")
    lower_test = t_test(test.difference + margin, test.standard_error, test.df)
    upper_test = t_test(test.difference - margin, test.standard_error, test.df)
    p = float(max(special.stdtr(test.df, [-lower_test.statistic, upper_test.statistic])))
    interval = t_test(test.difference, test.standard_error, test.df, level=1 - 2 * alpha).interval
    return EquivalenceTest(p, interval, margin)
