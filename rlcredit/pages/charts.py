"""Small charts inside a page: intervals on a common scale, and curves with bands, both as plain numbers for SVG."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CHART_WIDTH, CHART_HEIGHT = 560, 250
"""Size of a chart of curves, in its own units."""

CHART_LEFT, CHART_RIGHT, CHART_TOP, CHART_BOTTOM = 44, 430, 22, 210
"""Edges of what is drawn in it; names of the curves stand to the right."""

LABEL_DISTANCE = 15
"""Least distance between the names of two curves."""

SCALE_MARGIN = 0.04
"""Share of a scale that is left free at each end."""


def choose_tick_values(low: float, high: float, count: int = 5) -> list[float]:
    """Return round values from low to high, as many steps as asked for at most.

    Example:
        >>> choose_tick_values(-2.2, 6.3), choose_tick_values(0.41, 0.48)
        ([-2.0, 0.0, 2.0, 4.0, 6.0], [0.42, 0.44, 0.46, 0.48])

    """
    rough = max(high - low, 1e-9) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    start = math.ceil(low / step - 1e-9)
    end = math.floor(high / step + 1e-9)
    return [round(place * step, 10) for place in range(start, end + 1)]


@dataclass(frozen=True)
class StripScale:
    """The scale that strips of one table share.

    Args:
        low: Value at the left end.
        high: Value at the right end.

    """

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float]) -> "StripScale":
        """Return the scale on which zero and all values have their place, with some air at its ends.

        Example:
            >>> scale = StripScale.around([-1.0, 9.0, float("nan")])
            >>> [round(scale.place(value)) for value in (-1.0, 0.0, 9.0)], scale.ticks
            ([4, 13, 96], [0.0, 5.0])

        """
        finite = [0.0, *(value for value in values if math.isfinite(value))]
        low, high = min(finite), max(finite)
        air = SCALE_MARGIN * (high - low) / (1 - 2 * SCALE_MARGIN) or 1.0
        return cls(low - air, high + air)

    def place(self, value: float) -> float:
        """Return the place of a value in percent of the width."""
        return round(100 * (value - self.low) / (self.high - self.low), 2)

    @property
    def ticks(self) -> list[float]:
        """Round values that are written below the strips."""
        return choose_tick_values(self.low, self.high, 4)


@dataclass(frozen=True)
class IntervalStrip:
    """An estimate with its interval, on a scale that it shares with others.

    Args:
        scale: Scale of the strip.
        estimate: Estimate; None where there is none.
        low: Lower end of its interval; None without one.
        high: Upper end of its interval; None without one.
        margin: Size of a difference that does not matter; zero for none.

    """

    scale: StripScale
    estimate: float | None
    low: float | None = None
    high: float | None = None
    margin: float = 0.0


@dataclass(frozen=True)
class DrawnCurve:
    """A curve as points of an SVG.

    Args:
        name: Name of the curve.
        line: Points of the line.
        band: Points around the band.
        label_height: Height at which its name stands.

    """

    name: str
    line: str
    band: str
    label_height: float


@dataclass(frozen=True)
class CurveChart:
    """Curves on common axes.

    Args:
        curves: Curves, the first in front of the eye.
        across: Places and texts of the ticks across.
        upward: Places and texts of the ticks upward.

    """

    curves: Sequence[DrawnCurve]
    across: Sequence[tuple[float, str]]
    upward: Sequence[tuple[float, str]]
    width: int = CHART_WIDTH
    height: int = CHART_HEIGHT
    left: int = CHART_LEFT
    right: int = CHART_RIGHT
    bottom: int = CHART_BOTTOM

    @property
    def names(self) -> list[str]:
        """Names of the curves."""
        return [curve.name for curve in self.curves]


def draw_curve_chart(curves: Mapping[str, Sequence[Sequence[float]]]) -> CurveChart:
    """Return the chart of some curves.

    Args:
        curves: Points of every curve by its name: place, mean, and the two ends of its interval.

    Example:
        >>> chart = draw_curve_chart({"own": [(0, 0.4, 0.4, 0.4), (10, 0.6, 0.5, 0.7)]})
        >>> chart.curves[0].line, [text for _, text in chart.across]
        ('44.0,210.0 430.0,84.7', ['0', '2', '4', '6', '8', '10'])

    """
    points = [point for curve in curves.values() for point in curve]
    start, end = min(point[0] for point in points), max(point[0] for point in points)
    low, high = min(point[2] for point in points), max(point[3] for point in points)

    def across(value: float) -> float:
        return round(CHART_LEFT + (CHART_RIGHT - CHART_LEFT) * (value - start) / ((end - start) or 1), 1)

    def upward(value: float) -> float:
        return round(CHART_BOTTOM - (CHART_BOTTOM - CHART_TOP) * (value - low) / ((high - low) or 1), 1)

    heights = _spread_labels([upward(curve[-1][1]) + 4 for curve in curves.values()])
    svg_curves = [
        DrawnCurve(
            name,
            " ".join(f"{across(x)},{upward(mean)}" for x, mean, _, _ in curve),
            " ".join(
                [
                    *(f"{across(x)},{upward(bottom)}" for x, _, bottom, _ in curve),
                    *(f"{across(x)},{upward(top)}" for x, _, _, top in reversed(curve)),
                ]
            ),
            height,
        )
        for (name, curve), height in zip(curves.items(), heights, strict=True)
    ]
    return CurveChart(
        svg_curves,
        [(across(value), f"{value:g}") for value in choose_tick_values(start, end)],
        [(upward(value), f"{value:g}") for value in choose_tick_values(low, high)],
    )


def _spread_labels(heights: Sequence[float]) -> list[float]:
    """Return heights in the same order with at least a line between them."""
    spread = list(heights)
    order = sorted(range(len(spread)), key=lambda place: spread[place])
    for upper_label, lower_label in itertools.pairwise(order):
        spread[lower_label] = max(spread[lower_label], spread[upper_label] + LABEL_DISTANCE)
    return [round(height, 1) for height in spread]
