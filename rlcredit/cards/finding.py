"""One number of a card, with what is needed to read it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rlcredit.statistics.intervals import Interval, jackknife_interval


@dataclass(frozen=True)
class Finding:
    """A quantity that has been measured.

    Args:
        name: by which it is found again, letters and ``_``.
        title: for people.
        estimate: its value; NaN where there is none.
        unit: ``share``, ``points`` (of per cent), ``degrees``, ``times``, ``steps``, ``number`` or ``seconds``.
        low: end of its 95 % interval; NaN without one.
        high: likewise.
        baseline: the same quantity of the baseline; NaN where that has none.
        sentence: what it says, in plain words.

    """

    name: str
    title: str
    estimate: float
    unit: str = "number"
    low: float = np.nan
    high: float = np.nan
    baseline: float = np.nan
    sentence: str = ""

    @property
    def interval(self) -> Interval | None:
        """Its interval, None without one."""
        return Interval(self.low, self.high, 0.95) if np.isfinite([self.low, self.high]).all() else None

    def to_json(self) -> dict[str, Any]:
        """Return it for JSON, NaN as null."""
        return {key: None if value != value else value for key, value in asdict(self).items()}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> "Finding":
        """Return what ``plain`` has written."""
        numbers = ("estimate", "low", "high", "baseline")
        known: dict[str, Any] = {key: np.nan if key in numbers and plain[key] is None else plain[key] for key in plain}
        return cls(**known)


def jackknife_estimate(
    statistic: Callable[[Sequence[int]], float], parts: int, least: float = 0.0, most: float = 1.0
) -> dict[str, Any]:
    """Return a statistic of all parts and its jackknife interval, as arguments of a finding.

    Args:
        statistic: of some of the parts, by number.
        parts: how many there are: prompts, or completions; below three there is no interval.
        least: value that it can have; the interval ends there.
        most: likewise.

    """
    every = list(range(parts))
    found = {"estimate": float(statistic(every))}
    if parts < 3:
        return found
    without = np.array([statistic([part for part in every if part != left]) for left in every], dtype=np.float64)
    interval = jackknife_interval(found["estimate"], without)
    return {**found, "low": max(least, interval.low), "high": min(most, interval.high)}
