"""Interquartile mean (Agarwal et al., 2021, arXiv:2108.13264)."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


def interquartile_mean(scores: ArrayLike) -> float:
    """Average the middle half of all scores.

    A quarter of the scores, rounded down, is left out at each end: one run that collapsed does not move it, and unlike
    the median it uses half of the runs. Fewer than four scores are all kept.

    Args:
        scores: one score per run, or per run and task, which are pooled as in the paper; any shape.

    Example:
        >>> round(interquartile_mean([0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 1.0]), 4)  # of 0.6, 0.7, 0.8 and 0.9
        0.75

    """
    return float(stats.trim_mean(np.ravel(scores), 0.25))
