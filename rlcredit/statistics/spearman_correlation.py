"""Spearman's rank correlation."""

import numpy as np
from numpy.typing import ArrayLike


def spearman_correlation(left: ArrayLike, right: ArrayLike) -> float:
    """Return the correlation of the ranks of two quantities, equal values sharing the mean of their ranks.

    Args:
        left: Values of one quantity, shape ``(n,)``, at least two of them different.
        right: Values of the other quantity, shape ``(n,)``, at least two of them different.

    Returns:
        From -1 to 1; NaN if one of them is constant.

    Example:
        >>> spearman_correlation([1, 2, 3, 4], [10, 100, 90, 1000])
        0.8

    """
    from scipy.stats import rankdata  # noqa: PLC0415  (it takes half a second)

    ranks = [rankdata(side) for side in (left, right)]
    if any(np.ptp(each) == 0 for each in ranks):
        return float("nan")
    return round(float(np.corrcoef(*ranks)[0, 1]), 12)
