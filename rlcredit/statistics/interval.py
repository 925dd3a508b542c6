"""An interval and its level."""

from typing import NamedTuple


class Interval(NamedTuple):
    """Hold the two ends of an interval and the share of samples in which such an interval holds the truth.

    Example:
        >>> low, high, level = Interval(0.5, 2.5, level=0.95)
        >>> high - low
        2.0

    """

    low: float
    high: float
    level: float
