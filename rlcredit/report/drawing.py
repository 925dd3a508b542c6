"""How differences and curves are drawn."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlcredit.figures import ACCENT, GRID, INK, MUTED, SECOND, create_figure, style_axes
from rlcredit.report.comparison import ConditionComparison
from rlcredit.report.summary import estimate_over_runs
from rlcredit.report.training import Curve

LINES = (INK, ACCENT, SECOND, "#2b8a3e", "#9c36b5", "#e8890c", "#0b7285", "#c2255c")
"""One per condition of a family, the baseline's first; beyond eight they repeat."""

WIDTH, DPI = 4.8, 160


def draw_forest_plot(compared: Sequence[ConditionComparison], margin: float, path: Path) -> None:
    """Draw the paired differences to a baseline, in percentage points: every seed, their mean, its 95 % interval.

    Args:
        compared: comparisons of a family.
        margin: differences within it do not matter; shaded.
        path: of the picture.

    """
    figure = create_figure(WIDTH, 0.9 + 0.42 * len(compared))
    axes = figure.subplots()
    axes.axvspan(-100 * margin, 100 * margin, color=GRID, alpha=0.7, linewidth=0)
    axes.axvline(0, color=MUTED, linewidth=1)
    for row, comparison in enumerate(compared):
        colour = {"better": "#2b8a3e", "worse": ACCENT}.get(comparison.verdict, INK)
        points = 100 * comparison.differences
        axes.plot(points, np.full(len(points), row + 0.22), "|", color=MUTED, markersize=5)
        if comparison.test:
            axes.plot([100 * end for end in comparison.test.interval[:2]], [row, row], color=colour, linewidth=1.8)
        if len(points):
            axes.plot(100 * comparison.differences.mean(), row, "o", color=colour, markersize=6)
    style_axes(axes, "")
    axes.set_yticks(range(len(compared)), [comparison.condition for comparison in compared])
    axes.set(ylim=(len(compared) - 0.4, -0.6), xlabel=f"difference to {compared[0].baseline}, percentage points")
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, dpi=DPI)


def draw_curves(curves: Mapping[str, Sequence[Curve]], label: str, path: Path, *, share: bool = False) -> None:
    """Draw the mean curve of every condition over its runs, and Student's 95 % interval as a band.

    Args:
        curves: values by step of every run, by condition; the first is the baseline.
        label: of the values, which are at least zero.
        path: of the picture.
        share: whether values are proportions.

    """
    figure = create_figure(WIDTH, 3.0)
    axes = figure.subplots()
    for place, (condition, runs) in enumerate(curves.items()):
        style: dict[str, Any] = {"color": LINES[place % len(LINES)], "linewidth": 1.6}
        steps = sorted(set.intersection(*(set(run) for run in runs))) if runs else []
        estimates = [estimate_over_runs([run[step] for run in runs]) for step in steps]
        marker = "o" if len(steps) == 1 else None  # a line through one point is not to be seen
        axes.plot(steps, [estimate.mean for estimate in estimates], label=condition, marker=marker, **style)
        if len(runs) > 1:  # runs that agree have no interval
            ends = np.array([e.interval[:2] if e.interval else (e.mean, e.mean) for e in estimates])
            low, high = ends.clip(0, 1 if share else None).T
            axes.fill_between(steps, low, high, color=style["color"], alpha=0.12, linewidth=0)
    style_axes(axes, "")
    axes.set(xlabel="optimizer step", ylabel=label)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=DPI)
