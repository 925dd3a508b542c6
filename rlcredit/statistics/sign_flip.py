"""Sign-flip test of paired differences: exact while the signs can be enumerated, Monte Carlo above."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlcredit.statistics.finite_sample import finite_sample
from rlcredit.statistics.intervals import Interval

MAX_ENUMERATED_PAIRS = 20
"""Most pairs whose 2^n sign patterns are all visited."""


def sign_flip_p(differences: ArrayLike, draws: int = 100_000, seed: int = 0) -> float:
    r"""Return the two-sided p of no difference, by exchanging the two sides of pairs at random.

    .. math:: p = 2^{-n} \#\{ s \in \{-1, 1\}^n : |s \cdot d| \ge |1 \cdot d| \}

    It assumes that the differences are symmetric about zero if the conditions do not differ, and nothing of their
    shape. Above twenty pairs, signs are drawn and the observed ones are counted as one draw more, so that p is never
    zero and the test stays valid (Phipson and Smyth, 2010, doi:10.2202/1544-6115.1585).

    Args:
        differences: Condition minus baseline for each common seed, shape ``(n,)``, any unit.
        draws: Number of sign patterns drawn above twenty pairs.
        seed: Seed of these draws.

    Returns:
        At least ``smallest_sign_flip_p(n)``; tied pairs, and sums that tie as coarse scores do, make it larger.

    Example:
        >>> sign_flip_p([3.0, 1.0, 2.0])  # only +++ and --- reach |6|, of eight patterns
        0.25

    """
    row = finite_sample(differences, fewest=1, purpose="A sign-flip test")
    tolerance = 1e-9 * np.abs(row).sum()  # sums of the same numbers in another order, or rounded, are ties
    limit = abs(row.sum()) - tolerance
    if len(row) <= MAX_ENUMERATED_PAIRS:
        return float((np.abs(_signed_sums(row)) >= limit).mean())
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (draws, len(row)))
    return float((1 + (np.abs(signs @ row) >= limit).sum()) / (1 + draws))


def sign_flip_interval(differences: ArrayLike, level: float = 0.95, draws: int = 100_000, seed: int = 0) -> Interval:
    r"""Return the means that the sign-flip test does not reject: an interval for differences that are symmetric.

    A mean is rejected from below if at most :math:`\lfloor \alpha 2^{n-1} \rfloor - 1` of the means of subsets of the
    differences lie at or below it, and so from above: the ends are means of subsets (Hartigan, 1969,
    doi:10.1080/01621459.1969.10501057), and zero lies outside exactly if the test rejects it. One run that fell far
    moves the near end of Student's interval away from itself; here the ends stay among the differences.

    Args:
        differences: Condition minus baseline for each common seed, shape ``(n,)``, any unit.
        level: Confidence level; pairs must be able to reach it.
        draws: Number of subsets drawn above twenty pairs.
        seed: Seed of these draws.

    Raises:
        ValueError: fewer pairs than the level needs.

    Example:
        >>> sign_flip_interval([6.0, 1.0, 2.0, 3.0, 4.0, 5.0])  # of six pairs only the whole range has 95 %
        Interval(low=1.0, high=6.0, level=0.95)

    """
    row = finite_sample(differences, fewest=1, purpose="A sign-flip interval")
    if len(row) < fewest_sign_flip_pairs(1 - level):
        raise ValueError(f"{len(row)} pairs have no sign-flip interval of level {level:g}. Run more seeds.")
    if len(row) <= MAX_ENUMERATED_PAIRS:
        sums, sizes = np.zeros(1), np.zeros(1)
        for value in row:
            sums, sizes = np.concatenate([sums, sums + value]), np.concatenate([sizes, sizes + 1])
    else:
        subsets = np.random.default_rng(seed).random((draws, len(row))) < 0.5
        sums, sizes = subsets @ row, subsets.sum(1)
    means = np.sort(sums[sizes > 0] / sizes[sizes > 0])
    place = math.floor((1 - level) / 2 * (len(means) + 1) + 1e-9) - 1
    return Interval(float(means[place]), float(means[-1 - place]), level)


def smallest_sign_flip_p(pairs: int) -> float:
    """Return the least two-sided p that this many pairs can reach, if all have one sign.

    It is 2^(1 - n): five pairs can never reach 0.05, whatever the effect; six reach 0.031.

    Example:
        >>> [smallest_sign_flip_p(pairs) for pairs in (3, 5, 6, 8)]
        [0.25, 0.0625, 0.03125, 0.0078125]

    """
    return 2.0 ** (1 - pairs)


def fewest_sign_flip_pairs(alpha: float) -> int:
    """Return the least number of pairs whose sign-flip test can reach alpha at all.

    Example:
        >>> fewest_sign_flip_pairs(0.05)
        6
        >>> fewest_sign_flip_pairs(0.05 / 4)  # as the first of four in Holm's procedure
        8

    """
    return math.ceil(1 - math.log2(alpha))


def _signed_sums(row: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of all sign patterns, doubling the list with each number."""
    sums = np.zeros(1)
    for value in row:
        sums = np.concatenate([sums - value, sums + value])
    return sums
