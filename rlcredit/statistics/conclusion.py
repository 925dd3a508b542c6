"""The conclusion of a comparison with a baseline, in words."""

import math
from bisect import bisect_left

from numpy.typing import ArrayLike
from scipy import special

from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.t_test import paired_t_test


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


def state_conclusion(
    differences: ArrayLike,
    margin: float,
    *,
    p: float | None = None,
    p_equivalence: float | None = None,
    alpha: float = 0.05,
    family: int = 1,
    remedy: str = "a new campaign needs {} seeds",
) -> str:
    """Conclude from paired differences to a baseline, where more is better.

    In this order, so that exactly one is said:

    1. "equivalent within 1 pp" if the difference is shown to be smaller than the margin, even if it is also shown not
       to be zero: what was said beforehand not to matter does not begin to matter because many seeds measure it well.
    2. "better" or "worse" if it is shown not to be zero. Its size is in the interval, not in the word.
    3. "undecided: a new campaign needs n seeds" otherwise, n by ``seeds_to_decide`` with the deviation observed, at
       alpha over the size of the family; at least one more than there are. Seeds added to this one would be a second
       look at it.

    A true difference at the margin or beyond is called equivalent with chance alpha at most, a true difference of zero
    better or worse with chance alpha at most. To judge a family of conditions, correct first and pass on: ``ps =
    holm_adjusted_p([paired_t_test(d).p for d in family])``, the p of ``equivalence_test`` corrected in the same way,
    and the number of conditions.

    Args:
        differences: Condition minus baseline for each common seed, in proportions (0.01 is one pp), shape ``(n,)``.
        margin: Largest difference that would not matter, in proportions, above zero.
        p: P-value of no difference, corrected; the paired t's own if not given.
        p_equivalence: P-value of a difference beyond the margin, corrected; the paired t's own if not given.
        alpha: Significance level of each statement.
        family: Number of conditions that the p-values are corrected for.
        remedy: Advice about n where the difference stays undecided.

    Example:
        >>> state_conclusion([0.02, 0.03, 0.025, 0.03], margin=0.01)
        'better'
        >>> state_conclusion([0.001, -0.002, 0.002, 0.0], margin=0.01)
        'equivalent within 1 pp'
        >>> state_conclusion([0.02, -0.03, 0.01, 0.0], margin=0.01)
        'undecided: a new campaign needs 63 seeds'

    """
    test = paired_t_test(differences)
    if (equivalence_test(test, margin).p if p_equivalence is None else p_equivalence) <= alpha:
        return f"equivalent within {100 * margin:g} pp"
    if (test.p if p is None else p) <= alpha:
        return "better" if test.difference > 0 else "worse"
    seeds = int(test.df) + 1
    enough = seeds_to_decide(test.standard_error * math.sqrt(seeds), margin, alpha / family)
    return f"undecided: {remedy.format(max(enough, seeds + 1))}"
