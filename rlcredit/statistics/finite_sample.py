"""Check for one row of finite numbers, which every statistic of runs expects."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def finite_sample(values: ArrayLike, fewest: int, purpose: str) -> NDArray[np.float64]:
    """Return the values as one row of floats, or refuse them.

    A missing run is refused rather than skipped: dropped from one condition only, it would break the pairs and
    favour the condition whose bad runs crash.

    Args:
        values: Value of each run, shape ``(n,)``.
        fewest: Least n that the statistic needs.
        purpose: Name of the statistic, for the message.

    Raises:
        ValueError: not one row, too short, or not finite.

    Example:
        >>> finite_sample([1, 2], fewest=2, purpose="Welch's t").tolist()
        [1.0, 2.0]

    """
    row = np.asarray(values, dtype=np.float64)
    if row.ndim != 1 or len(row) < fewest:
        raise ValueError(f"{purpose} needs a row of at least {fewest} values, got shape {row.shape}. Run more seeds.")
    if not np.isfinite(row).all():
        index = int(np.flatnonzero(~np.isfinite(row))[0])
        problem = f"{purpose} needs finite values, got {row[index]} at {index}"
        raise ValueError(f"{problem}. Repeat that run, or drop its pair.")
    return row
