"""The number of collapsed runs, and what it says of their rate."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rlcredit.statistics.intervals import Interval

COLLAPSE_FALL = 0.1
"""Further than this below the median of its condition, in proportions, a run has collapsed."""


def collapsed_run_mask(values: ArrayLike, fall: float = COLLAPSE_FALL) -> NDArray[np.bool_]:
    """Mark the runs that end far below the median of their condition.

    A mean and Student's interval describe runs that spread; with one collapse of 20 pp among ten runs that agree
    otherwise, a 95 % interval holds the true mean in 61 % of samples. Such runs are counted beside it.

    Args:
        values: Value of each run of a condition, shape ``(n,)``.
        fall: Distance below the median from which a run counts as collapsed, in the unit of the values.

    Example:
        >>> collapsed_run_mask([0.95, 0.96, 0.40, 0.94]).tolist()
        [False, False, True, False]

    """
    row = np.asarray(values, dtype=np.float64)
    return row < np.median(row) - fall


def clopper_pearson_limit(events: int, trials: int, confidence: float = 0.95) -> float:
    r"""Return the highest rate compatible with a number of events: Clopper and Pearson's upper limit.

    .. math:: p \text{ with } P(X \le k \mid n, p) = 1 - \gamma

    Args:
        events: Number of events k.
        trials: Number of trials n.
        confidence: :math:`\gamma`, one-sided.

    Example:
        >>> round(clopper_pearson_limit(0, 8), 3), round(clopper_pearson_limit(2, 8), 3)  # none of 8: up to 31 % may
        (0.312, 0.6)

    """
    return 1.0 if events == trials else float(special.betaincinv(events + 1, trials - events, confidence))


def clopper_pearson_interval(events: int, trials: int, level: float = 0.95) -> Interval:
    """Return the rates compatible with a number of events: Clopper and Pearson's exact interval.

    Args:
        events: Number of events.
        trials: Number of trials.
        level: Confidence level, two-sided.

    Example:
        >>> interval = clopper_pearson_interval(4, 62)
        >>> round(interval.low, 3), round(interval.high, 3)
        (0.018, 0.157)

    """
    one_sided = (1 + level) / 2
    highest_absence = clopper_pearson_limit(trials - events, trials, one_sided)
    return Interval(1 - highest_absence, clopper_pearson_limit(events, trials, one_sided), level)
