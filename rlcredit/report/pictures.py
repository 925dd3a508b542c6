"""The pictures of a family: how it learns, where it ends, what its policies are like."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlcredit.campaign.values import Family
from rlcredit.figures import ACCENT, GRID, INK, MUTED, SECOND, finish, new_figure
from rlcredit.report.comparison import Comparison
from rlcredit.report.evidence import Evidence
from rlcredit.report.summary import over_runs
from rlcredit.report.training import SHARES, SHOWN, Curve

LINES = (INK, ACCENT, SECOND, "#2b8a3e", "#9c36b5", "#e8890c", "#0b7285", "#c2255c")
"""One per condition of a family, the baseline's first; they come again beyond eight."""

HELD_OUT = {"val/entropy": "entropy of held-out samples, nats", "val/completion_length": "tokens per held-out sample"}
"""Drawn where no training curves are."""

WIDTH, DPI = 4.8, 160


def family_pictures(
    evidence: Evidence,
    family: Family,
    found: Sequence[Comparison],
    curves: Mapping[tuple[str, int], Mapping[str, Curve]],
    out: Path,
    prefix: str,
) -> dict[str, str]:
    """Draw a family; conditions without runs are left out, and those that are measured otherwise than the baseline.

    Args:
        evidence: of the campaign.
        family: what is compared.
        found: its comparisons.
        curves: of training, by condition and seed; may be empty.
        out: folder of the pictures.
        prefix: of their names.

    Returns:
        File names by what they show.

    """
    drawn: dict[str, str] = {}

    def picture(shows: str) -> Path:
        drawn[shows] = f"{prefix}_{len(drawn) + 1}.png"
        return out / drawn[shows]

    primary, steps = evidence.declaration.primary, evidence.declaration.steps
    names = (family.baseline, *family.conditions)
    alike = [name for name in names if not evidence.unlike(name, family.baseline)]
    members = {name: runs for name in alike if (runs := evidence.of(name))}
    if any(len(each.seeds) for each in found):
        draw_forest(found, evidence.declaration.effect, picture(f"differences after step {steps}"))
    if members:
        held_out = {name: [run.curve(primary) for run in runs] for name, runs in members.items()}
        draw_curves(held_out, label(primary), picture("learning curves"), share=True)
    for metric, shows in SHOWN.items():
        traced = {
            name: [curves.get((name, run.seed), {}).get(metric) for run in runs] for name, runs in members.items()
        }
        smooth = {name: [smoothed(row) for row in rows if row] for name, rows in traced.items() if any(rows)}
        if smooth:
            draw_curves(smooth, shows, picture(f"{shows}, training"), share=metric in SHARES)
    for metric, shows in HELD_OUT.items() if members and not curves else ():
        values = {name: [run.curve(metric) for run in runs] for name, runs in members.items()}
        draw_curves(values, shows, picture(shows))
    return drawn


def label(metric: str) -> str:
    """Return how a held-out metric is called in a picture.

    Example:
        >>> label("val/pass_at_1")
        'pass@1'

    """
    return metric.removeprefix("val/").replace("_at_", "@")


def smoothed(curve: Curve, window: int = 5) -> Curve:
    """Average a curve over the steps of every window, named by its last step.

    Example:
        >>> smoothed({1: 0.0, 2: 1.0, 3: 4.0}, window=2)
        {2: 0.5, 3: 4.0}

    """
    steps = sorted(curve)
    parts = [steps[start : start + window] for start in range(0, len(steps), window)]
    return {part[-1]: sum(curve[step] for step in part) / len(part) for part in parts}


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
