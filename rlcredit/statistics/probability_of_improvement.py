"""Probability of improvement (Agarwal et al., 2021, arXiv:2108.13264)."""

import numpy as np
from numpy.typing import ArrayLike


def probability_of_improvement(arm: ArrayLike, baseline: ArrayLike) -> float:
    r"""Return how often a run of one arm beats a run of the other, a tie counting one half.

    .. math:: \frac{1}{N M} \sum_{i=1}^{N} \sum_{j=1}^{M} \left(1[x_i > y_j] + \tfrac12 1[x_i = y_j]\right)

    The Mann-Whitney U over the number of pairs: 1/2 says that neither tends to be better. It says how often, not by
    how much. With several tasks it is the mean over tasks, each compared only with itself.

    Args:
        arm: one score per run, shape ``(N,)``, or per run and task, ``(N, tasks)``.
        baseline: likewise, ``(M,)`` or ``(M, tasks)``.

    Example:
        >>> probability_of_improvement([0.6, 0.7], [0.6, 0.5])  # 0.6 ties with 0.6; the three other pairs are won
        0.875

    """
    pairs = np.asarray(arm, dtype=np.float64)[:, None] - np.asarray(baseline, dtype=np.float64)[None, :]
    return float((1 + np.sign(pairs).mean()) / 2)
