"""Sign-flip test of paired differences: exact while the signs can be enumerated, Monte Carlo above."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlcredit.statistics.finite_sample import finite_sample

ENUMERATED = 20
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
    tolerance = 1e-12 * np.abs(row).sum()  # sums of the same numbers in another order are ties
    reached = abs(row.sum()) - tolerance
    if len(row) <= ENUMERATED:
        return float((np.abs(_signed_sums(row)) >= reached).mean())
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (draws, len(row)))
    return float((1 + (np.abs(signs @ row) >= reached).sum()) / (1 + draws))


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
