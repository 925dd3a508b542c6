"""Accuracy of k completions: pass@k and maj@k."""

from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def pass_at_k(completions: int, correct: ArrayLike, k: int) -> NDArray[np.float64]:
    r"""Estimate the chance that at least one of k completions is right, from n of which c were.

    .. math:: 1 - \binom{n-c}{k} \Big/ \binom{n}{k} = 1 - \prod_{i=n-c+1}^{n} \left(1 - \frac{k}{i}\right)

    Args:
        completions: Completions per question n, at least k.
        correct: Right completions c of each question, any shape.
        k: Number of completions that may be tried.

    Returns:
        One estimate per question, the shape of ``correct``; pass@1 is c / n.

    Raises:
        ValueError: fewer completions than k.

    Example:
        >>> pass_at_k(8, [2, 0], k=4).round(6).tolist()
        [0.785714, 0.0]

    """
    if not 1 <= k <= completions:
        raise ValueError(f"pass@{k} needs at least {k} completions per question, got {completions}.")
    wrong = completions - np.asarray(correct, dtype=np.float64)[..., None]
    factors = np.arange(1, completions + 1)
    return 1 - np.where(factors > wrong, 1 - k / factors, 1.0).clip(min=0).prod(-1)


_MAX_EXACT_COMPLETIONS = 50
"""Completions up to which floats count subsets exactly; beyond, Python's integers do, several times slower."""


@lru_cache(maxsize=100_000)
def majority_at_k(right: int, wrong: Sequence[int], completions: int, k: int) -> float:
    r"""Return the chance that the vote of k of n completions is right.

    The mean over all subsets of k completions, counted, not drawn, and over ties, of which each answer wins an equal
    share:

    .. math::
        \binom{n}{k}^{-1} \sum_{S : |S| = k}
        \frac{1[c_S \ge 1,\; c_S \ge \max_j w_{S,j}]}{1 + |\{j : w_{S,j} = c_S\}|}

    with c the votes for the right answer in a subset and w those for wrong answers. maj@1 is the share of completions
    that are right, and maj@n is one vote of all.

    Args:
        right: Completions with the right answer.
        wrong: Completions with each wrong answer, a tuple of numbers of at least 1.
        completions: Completions per question n; those that are neither have no answer, and vote for nothing.
        k: Number of completions that vote.

    Raises:
        ValueError: fewer completions than k, or more votes than completions.

    Example:
        >>> majority_at_k(2, (2,), completions=4, k=4), majority_at_k(1, (), completions=4, k=4)  # a tie; three mute
        (0.5, 1.0)

    """
    if not 1 <= k <= completions:
        raise ValueError(f"maj@{k} needs at least {k} completions per question, got {completions}.")
    mute = completions - right - sum(wrong)
    if mute < 0:
        raise ValueError(f"There are {right + sum(wrong)} votes, but {completions} completions.")
    won = sum(
        comb(right, votes) * _winning_vote_ways(wrong, mute, votes, k - votes) for votes in range(1, min(right, k) + 1)
    )
    return float(won / comb(completions, k))


def _winning_vote_ways(wrong: Sequence[int], mute: int, votes: int, voters: int) -> float:
    """Count the subsets of other votes in which no answer gets more votes; with t tied answers each counts 1 / t.

    Args:
        wrong: Completions with each wrong answer.
        mute: Completions without an answer.
        votes: Number of votes for the right answer.
        voters: Number of completions with another answer, or none, that take part.

    """
    # ways[t, m]: with t answers level with the right one, and m completions taking part.
    tie_limit = min(len(wrong), voters // votes)
    kind = np.float64 if mute + sum(wrong) <= _MAX_EXACT_COMPLETIONS else np.object_
    ways: NDArray[Any] = np.zeros((tie_limit + 1, voters + 1), dtype=kind)
    ways[0, : mute + 1] = [comb(mute, number) for number in range(min(mute, voters) + 1)]
    for size in wrong:
        next_ways = np.zeros_like(ways)
        for number in range(min(size, votes, voters) + 1):
            level, subsets = int(number == votes), comb(size, number)
            next_ways[level:, number:] += subsets * ways[: len(ways) - level, : voters + 1 - number]
        ways = next_ways
    return sum(count / (1 + level) for level, count in enumerate(ways[:, voters]))
