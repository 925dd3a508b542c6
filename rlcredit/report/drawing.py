"""How differences and curves are drawn."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlcredit.figures import ACCENT, GRID, INK, MUTED, SECOND, finish, new_figure
from rlcredit.report.comparison import Comparison
from rlcredit.report.summary import over_runs
from rlcredit.report.training import Curve

LINES = (INK, ACCENT, SECOND, "#2b8a3e", "#9c36b5", "#e8890c", "#0b7285", "#c2255c")
"""One per condition of a family, the baseline's first; they come again beyond eight."""

WIDTH, DPI = 4.8, 160


def draw_forest(found: Sequence[Comparison], margin: float, path: Path) -> None:
    """Draw the paired differences to a baseline, in percentage points: every seed, their mean, its 95 % interval.

    Args:
        found: comparisons of a family.
        margin: differences within it do not matter; shaded.
        path: of the picture.

    """
    figure = new_figure(WIDTH, 0.9 + 0.42 * len(found))
    axes = figure.subplots()
    axes.axvspan(-100 * margin, 100 * margin, color=GRID, alpha=0.7, linewidth=0)
    axes.axvline(0, color=MUTED, linewidth=1)
    for row, each in enumerate(found):
        colour = {"better": "#2b8a3e", "worse": ACCENT}.get(each.verdict, INK)
        axes.plot(100 * each.differences, np.full(len(each.seeds), row + 0.22), "|", color=MUTED, markersize=5)
        if each.test:
            axes.plot([100 * end for end in each.test.interval[:2]], [row, row], color=colour, linewidth=1.8)
        if len(each.seeds):
            axes.plot(100 * each.differences.mean(), row, "o", color=colour, markersize=6)
    finish(axes, "")
    axes.set_yticks(range(len(found)), [each.condition for each in found])
    axes.set(ylim=(len(found) - 0.4, -0.6), xlabel=f"difference to {found[0].baseline}, percentage points")
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
    figure = new_figure(WIDTH, 3.0)
    axes = figure.subplots()
    for place, (condition, runs) in enumerate(curves.items()):
        style: dict[str, Any] = {"color": LINES[place % len(LINES)], "linewidth": 1.6}
        steps = sorted(set.intersection(*(set(run) for run in runs))) if runs else []
        found = [over_runs([run[step] for run in runs]) for step in steps]
        axes.plot(steps, [each.mean for each in found], label=condition, **style)
        if len(runs) > 1:  # runs that agree have no interval
            ends = np.array([each.interval[:2] if each.interval else (each.mean, each.mean) for each in found])
            low, high = ends.clip(0, 1 if share else None).T
            axes.fill_between(steps, low, high, color=style["color"], alpha=0.12, linewidth=0)
    finish(axes, "")
    axes.set(xlabel="optimizer step", ylabel=label)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=DPI)
