"""The comparison of a family of conditions with a baseline, by paired differences: tests, correction, conclusions."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from numpy.typing import ArrayLike
from scipy import special

from rlcredit.statistics.adjusted_p import holm_adjusted_p
from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.finite_sample import finite_sample
from rlcredit.statistics.intervals import Interval
from rlcredit.statistics.power import detectable_effect
from rlcredit.statistics.sign_flip import (
    fewest_sign_flip_pairs,
    sign_flip_interval,
    sign_flip_p,
    smallest_sign_flip_p,
)
from rlcredit.statistics.t_test import TTest, paired_t_test

NO_MARGIN = 1.0
"""Margin of differences of proportions where nothing is said of equivalence."""


@dataclass(frozen=True)
class PairedTest:
    """Hold both tests of one member of a family, before any correction.

    Args:
        test: Mean difference and its interval.
        p: P-value of no difference.
        p_equivalence: P-value of a difference at least as large as the margin.
        smallest_p: Smallest p of no difference that as many pairs can have.

    """

    test: TTest
    p: float
    p_equivalence: float
    smallest_p: float = 0.0

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return int(self.test.df) + 1

    def difference_to_detect(self, alpha: float) -> float:
        """Return the true difference that such pairs find with a power of 80 %, by Student's t at their spread.

        Args:
            alpha: Significance level of the test.

        """
        deviation = self.test.standard_error * math.sqrt(self.pairs)
        return deviation * detectable_effect(self.pairs, conditions=1, alpha=alpha)

    def pairs_to_decide(self, margin: float, alpha: float) -> int:
        """Return about how many pairs would decide, with such a spread; where there is none, if none of them differed.

        Args:
            margin: Largest difference that would not matter.
            alpha: Significance level of both tests.

        """
        if not self.test.standard_error:
            return math.ceil(math.log(alpha) / math.log1p(-margin))
        seeds = seeds_to_decide(self.test.standard_error * math.sqrt(self.pairs), margin, alpha)
        return max(seeds, self.pairs + 1)


def student_paired_test(differences: ArrayLike, margin: float) -> PairedTest:
    """Test paired differences by Student's t, both ways.

    Args:
        differences: Condition minus baseline for each pair, shape ``(n,)``, n at least two.
        margin: Largest difference that would not matter, above zero.

    """
    test = paired_t_test(differences)
    return PairedTest(test, test.p, equivalence_test(test, margin).p)


def sign_flip_paired_test(differences: ArrayLike) -> PairedTest:
    """Test paired differences by the exact sign-flip test, which shows no equivalence.

    For runs some of which collapsed: Student's t does not hold there. Its interval reaches at each end as far as
    Student's and as that of the sign-flip test, so that it leaves out nothing that the test would not reject.

    Args:
        differences: Condition minus baseline for each pair, shape ``(n,)``, n at least two.

    Example:
        >>> fell = sign_flip_paired_test([-0.62, -0.05, -0.06, -0.05, -0.04, -0.05, -0.06, -0.05]).test.interval
        >>> round(fell.low, 3), round(fell.high, 3)  # Student's begins at -0.291
        (-0.335, 0.046)

    """
    test = paired_t_test(differences)
    row = finite_sample(differences, fewest=2, purpose="A sign-flip test")
    if len(row) >= fewest_sign_flip_pairs(1 - test.interval.level):
        flip_interval = sign_flip_interval(row, test.interval.level)
        ends = min(test.interval.low, flip_interval.low), max(test.interval.high, flip_interval.high)
        test = replace(test, interval=Interval(*ends, test.interval.level))
    return PairedTest(test, sign_flip_p(row), 1.0, smallest_sign_flip_p(len(row)))


def paired_test(differences: ArrayLike, margin: float, has_collapses: bool) -> PairedTest:
    """Test paired differences by Student's t, or by the sign flip where a run of either side collapsed.

    Args:
        differences: Condition minus baseline for each pair, shape ``(n,)``, n at least two.
        margin: Largest difference that would not matter, above zero.
        has_collapses: Whether a run collapsed.

    """
    return sign_flip_paired_test(differences) if has_collapses else student_paired_test(differences, margin)


def bounded_paired_test(differences: ArrayLike, margin: float) -> PairedTest:
    """Test paired differences that lie in -1 to 1: by Student's t, exactly where all are equal and it has no error.

    If more than a share x of all pairs had another difference, n pairs without one would come with a chance below
    ``(1 - x) ** n``. A pair is taken to move the mean by one at most.

    Args:
        differences: Condition minus baseline for each pair, in proportions, shape ``(n,)``, n at least two.
        margin: Largest difference that would not matter, between zero and one.

    Example:
        >>> bounded = bounded_paired_test([0.0] * 298, margin=0.01)  # 0.99 ** 298
        >>> round(bounded.p_equivalence, 4), bounded.pairs_to_decide(0.01, alpha=0.05)
        (0.05, 299)

    """
    row = finite_sample(differences, fewest=2, purpose="A paired t")
    test = paired_t_test(row)
    if test.standard_error:
        return student_paired_test(row, margin)
    reach = 1 - ((1 - test.interval.level) / 2) ** (1 / len(row))
    interval = Interval(max(-1.0, test.difference - reach), min(1.0, test.difference + reach), test.interval.level)
    exact = replace(test, p=2.0 ** (1 - len(row)) if test.difference else 1.0, interval=interval)
    return PairedTest(exact, exact.p, (1 - max(0.0, margin - abs(test.difference))) ** len(row))


@dataclass(frozen=True)
class PairedConclusion:
    """Hold what the paired differences of one member of a family show.

    Args:
        test: Mean difference and its interval.
        p: P-value of no difference, corrected for the family.
        p_equivalence: P-value of a difference at least as large as the margin, corrected in the same way.
        words: Conclusion in words.
        detectable: True difference that such pairs find with a power of 80 % at the level left to the member; None
            unless it is undecided.

    """

    test: TTest
    p: float
    p_equivalence: float
    words: str
    detectable: float | None = None


def conclude_paired_family(
    family: Sequence[PairedTest | None],
    margin: float | Sequence[float],
    alpha: float = 0.05,
    remedy: str = "a new campaign needs {} seeds",
) -> list[PairedConclusion | None]:
    """Conclude from the paired differences of every member of a family, where more is better.

    Both p-values are corrected by Holm for the family. Then, in this order, so that exactly one is said:

    1. "equivalent within 1 pp" if the difference is shown to be smaller than the margin, even if it is also shown not
       to be zero: what was said beforehand not to matter does not begin to matter because many seeds measure it well.
    2. "better" or "worse" if it is shown not to be zero. Its size is in the interval, not in the word.
    3. "could not decide: ..." if no data of so many pairs could: the smallest p of a sign flip lies above the level
       that Holm's procedure leaves to the member, alpha over the number of members whose difference is not shown.
    4. "undecided: a new campaign needs n seeds" otherwise, n by ``pairs_to_decide`` at alpha over the size of the
       family. Seeds added to this one would be a second look at it.

    A true difference at the margin or beyond is called equivalent with chance alpha at most, a true difference of zero
    better or worse with chance alpha at most, anywhere in the family.

    Args:
        family: Tests of the members; None for one that cannot be tested, which counts as if both of its p were one.
        margin: Largest difference that would not matter, in proportions (0.01 is one pp), above zero; one for all, or
            one for each member.
        alpha: Significance level of each statement.
        remedy: Advice about n where a difference stays undecided.

    Returns:
        One conclusion per member, None where there is no test.

    Example:
        >>> rows = [0.02, 0.03, 0.025, 0.03], [0.001, -0.002, 0.002, 0.0], [0.02, -0.03, 0.01, 0.0]
        >>> for conclusion in conclude_paired_family([student_paired_test(row, 0.01) for row in rows], margin=0.01):
        ...     print(conclusion.words)
        better
        equivalent within 1 pp
        undecided: a new campaign needs 99 seeds

    """
    ps = holm_adjusted_p([member.p if member else 1.0 for member in family]).tolist()
    p_equivalences = holm_adjusted_p([member.p_equivalence if member else 1.0 for member in family]).tolist()
    margins = [margin] * len(family) if isinstance(margin, (int, float)) else margin
    level = alpha / max(1, sum(p > alpha for p in ps))
    conclusions: list[PairedConclusion | None] = []
    for member, p, p_equivalence, member_margin in zip(family, ps, p_equivalences, margins, strict=True):
        if member is None:
            conclusions.append(None)
            continue
        detectable = None
        if p_equivalence <= alpha:
            words = f"equivalent within {100 * member_margin:g} pp"
        elif p <= alpha:
            words = "better" if member.test.difference > 0 else "worse"
        elif member.smallest_p > level:
            reach = f"{member.pairs} pairs reach p = {member.smallest_p:.2g} at best"
            words = f"could not decide: {reach}, and {level:.2g} was needed"
        else:
            words = f"undecided: {remedy.format(member.pairs_to_decide(member_margin, alpha / len(family)))}"
            detectable = member.difference_to_detect(level)
        conclusions.append(PairedConclusion(member.test, p, p_equivalence, words, detectable))
    return conclusions


def seeds_to_decide(deviation: float, margin: float, alpha: float = 0.05) -> int:
    r"""Return the least number of paired seeds at which no difference could stay undecided.

    .. math:: (t_{n-1,\,1-\alpha/2} + t_{n-1,\,1-\alpha}) \frac{s}{\sqrt n} \le m

    The first term is how large a difference must be to count as one, the second how far below the margin it must be to
    count as none: together within the margin, they leave no gap. Such n find a true difference as large as the margin,
    and show a true difference of zero to be equivalent, each with a power of about 1 - alpha. It holds for the
    deviation given: the true one may be half or six times that of three seeds, and n goes with its square.

    Args:
        deviation: Standard deviation s of paired differences.
        margin: Largest difference m that would not matter, same unit.
        alpha: Significance level of both tests.

    Example:
        >>> seeds_to_decide(0.01, margin=0.01), seeds_to_decide(0.01, margin=0.02)
        (16, 6)

    """
    candidates = range(2, 10**12)

    def reaches(seeds: int) -> bool:
        quantiles = special.stdtrit(seeds - 1, [1 - alpha / 2, 1 - alpha])
        return bool(quantiles.sum() * deviation / math.sqrt(seeds) <= margin)

    return candidates[bisect_left(candidates, True, key=reaches)]
