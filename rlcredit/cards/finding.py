"""One number of a card, with its unit, interval and meaning."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field, WrapValidator

from rlcredit.statistics.intervals import Interval, jackknife_interval

FiniteNumber = Annotated[float, Field(allow_inf_nan=False)]
Measured = Annotated[FiniteNumber, WrapValidator(lambda value, check: np.nan if value is None else check(value))]
"""A number, NaN where there is none; JSON has null for it."""


@dataclass(frozen=True)
class Finding:
    """A measured quantity.

    Args:
        name: Key by which the finding is looked up, letters and ``_``.
        title: Title for people.
        estimate: Measured value; NaN where there is none.
        unit: Unit: ``share``, ``points`` (of per cent), ``degrees``, ``times``, ``steps``, ``tokens``, ``number`` or
            ``seconds``.
        low: Lower end of its 95 % interval; NaN without one.
        high: Upper end of its 95 % interval; NaN without one.
        baseline: Same quantity of the baseline; NaN where that has none.
        sentence: What the finding says, in plain words.

    """

    name: str
    title: str
    estimate: Measured
    unit: str = "number"
    low: Measured = np.nan
    high: Measured = np.nan
    baseline: Measured = np.nan
    sentence: str = ""

    @property
    def interval(self) -> Interval | None:
        """Interval of the estimate, None without one."""
        return Interval(self.low, self.high, 0.95) if np.isfinite([self.low, self.high]).all() else None


def jackknife_estimate(statistic: Callable[[Sequence[int]], float], parts: int, minimum: float = 0.0) -> dict[str, Any]:
    """Return a statistic over all parts with its jackknife interval, as arguments of a finding.

    Args:
        statistic: Function that returns the statistic of some of the parts, given by their numbers.
        parts: Number of parts, prompts or completions; below three there is no interval.
        minimum: Smallest value that the statistic can have; the interval ends there, and at 1.

    """
    numbers = list(range(parts))
    estimate = {"estimate": float(statistic(numbers))}
    if parts < 3:
        return estimate
    partial_values = np.array(
        [statistic([part for part in numbers if part != omission]) for omission in numbers], dtype=np.float64
    )
    interval = jackknife_interval(estimate["estimate"], partial_values)
    return {**estimate, "low": max(minimum, interval.low), "high": min(1.0, interval.high)}
