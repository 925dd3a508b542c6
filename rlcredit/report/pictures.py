"""Pictures of differences and curves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlcredit.base.plot_style import (
    ACCENT_COLOUR,
    BETTER_COLOUR,
    GRID_COLOUR,
    INK_COLOUR,
    MUTED_COLOUR,
    SECOND_COLOUR,
    WORSE_COLOUR,
    create_figure,
    style_axes,
)
from rlcredit.campaign.declaration import ComparisonFamily
from rlcredit.report.condition_comparison import ConditionComparison
from rlcredit.report.condition_summary import estimate_over_runs
from rlcredit.report.evidence import CampaignEvidence, FinishedRun
from rlcredit.report.report_tables import label_metric
from rlcredit.report.training_curves import SHARE_METRICS, TRAINING_METRICS, Curve

_LINE_COLOURS = (INK_COLOUR, ACCENT_COLOUR, SECOND_COLOUR, BETTER_COLOUR, "#9c36b5", "#e8890c", "#0b7285", "#c2255c")
"""One per condition of a family, the baseline's first; beyond eight they repeat."""

EQUAL_COSTS = 0.02
"""Share by which the tokens of conditions may differ for their curves by steps to say all."""

_PICTURE_WIDTH, _PICTURE_DPI = 4.8, 160


def draw_forest_plot(comparisons: Sequence[ConditionComparison], margin: float, path: Path) -> None:
    """Draw the paired differences from a baseline in percentage points: every seed, their mean, its 95 % interval.

    Args:
        comparisons: Comparisons of a family.
        margin: Margin within which differences do not matter; shaded.
        path: File that the picture is written to.

    """
    figure = create_figure(_PICTURE_WIDTH, 0.9 + 0.42 * len(comparisons))
    axes = figure.subplots()
    axes.axvspan(-100 * margin, 100 * margin, color=GRID_COLOUR, alpha=0.7, linewidth=0)
    axes.axvline(0, color=MUTED_COLOUR, linewidth=1)
    for row, comparison in enumerate(comparisons):
        colour = {"better": BETTER_COLOUR, "worse": WORSE_COLOUR}.get(comparison.verdict, INK_COLOUR)
        points = 100 * comparison.differences
        axes.plot(points, np.full(len(points), row + 0.22), "|", color=MUTED_COLOUR, markersize=5)
        if comparison.interval:
            axes.plot([100 * end for end in comparison.interval[:2]], [row, row], color=colour, linewidth=1.8)
        if comparison.mean_difference is not None:
            axes.plot(100 * comparison.mean_difference, row, "o", color=colour, markersize=6)
    style_axes(axes, "")
    axes.set_yticks(range(len(comparisons)), [comparison.condition for comparison in comparisons])
    axes.set(ylim=(len(comparisons) - 0.4, -0.6), xlabel=f"difference to {comparisons[0].baseline}, percentage points")
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, dpi=_PICTURE_DPI)


def draw_curves(
    curves: Mapping[str, Sequence[Curve]],
    label: str,
    path: Path,
    *,
    share: bool = False,
    course: str = "optimizer step",
) -> None:
    """Draw the mean curve of every condition over its runs, and Student's 95 % interval as a band.

    Args:
        curves: Values by step of every run, by condition; the first is the baseline.
        label: Axis label of the values, which are at least zero.
        path: File that the picture is written to.
        share: Whether values are proportions.
        course: Axis label of the steps, or of what is in their place.

    """
    figure = create_figure(_PICTURE_WIDTH, 3.0)
    axes = figure.subplots()
    for place, (condition, runs) in enumerate(curves.items()):
        style: dict[str, Any] = {"color": _LINE_COLOURS[place % len(_LINE_COLOURS)], "linewidth": 1.6}
        steps = sorted(set.intersection(*(set(run) for run in runs))) if runs else []
        estimates = [estimate_over_runs([run[step] for run in runs]) for step in steps]
        marker = "o" if len(steps) == 1 else None  # a line through one point is not to be seen
        axes.plot(steps, [estimate.mean for estimate in estimates], label=condition, marker=marker, **style)
        if len(runs) > 1:  # runs that agree have no interval
            ends = np.array([e.interval[:2] if e.interval else (e.mean, e.mean) for e in estimates])
            low, high = ends.clip(0, 1 if share else None).T
            axes.fill_between(steps, low, high, color=style["color"], alpha=0.12, linewidth=0)
    style_axes(axes, "")
    axes.set(xlabel=course, ylabel=label)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=_PICTURE_DPI)


HELD_OUT_CURVES = {
    "val/entropy": "entropy of held-out samples, nats",
    "val/completion_length": "tokens per held-out sample",
}
"""Drawn where no training curves are."""


def draw_family_pictures(
    evidence: CampaignEvidence,
    family: ComparisonFamily,
    comparisons: Sequence[ConditionComparison],
    curves: Mapping[tuple[str, int], Mapping[str, Curve]],
    folder: Path,
    prefix: str,
) -> dict[str, str]:
    """Draw the pictures of a family, without conditions that have no runs or another metric than the baseline.

    Args:
        evidence: Evidence of the campaign.
        family: Family of comparisons.
        comparisons: Comparisons of the family.
        curves: Training curves by condition and seed; may be empty.
        folder: Folder that the pictures are written to.
        prefix: Prefix of their file names.

    Returns:
        File names by what they show.

    """
    files: dict[str, str] = {}

    def picture(shows: str) -> Path:
        files[shows] = f"{prefix}_{len(files) + 1}.png"
        return folder / files[shows]

    declaration = evidence.declaration
    primary, course = declaration.primary, declaration.axis_label
    names = (family.baseline, *family.conditions)
    comparable_names = [name for name in names if not evidence.list_metric_differences(name, family.baseline)]
    members = {name: runs for name in comparable_names if (runs := evidence.runs_of(name))}
    if any(comparison.seeds for comparison in comparisons):
        draw_forest_plot(comparisons, declaration.effect, picture(f"differences {declaration.span_label}"))
    if members:
        held_out = {name: [run.curve(primary) for run in runs] for name, runs in members.items()}
        draw_curves(held_out, label_metric(primary), picture("learning curves"), share=True, course=course)
    for kind in ("decoded", "backward"):
        token_curves = {name: spread_curve_over_tokens(runs, primary, kind) for name, runs in members.items()}
        if course != f"{kind} tokens" and have_unequal_costs(list(token_curves.values())):
            shows = picture(f"learning curves by {kind} tokens")
            label = f"{kind} tokens, mean of the runs"
            draw_curves(token_curves, label_metric(primary), shows, share=True, course=label)
    for metric, shows in TRAINING_METRICS.items():
        traces = {
            name: [curves.get((name, run.seed), {}).get(metric) for run in runs] for name, runs in members.items()
        }
        smooth = {name: [smoothed_curve(row) for row in rows if row] for name, rows in traces.items() if any(rows)}
        if smooth:
            draw_curves(smooth, shows, picture(f"{shows}, training"), share=metric in SHARE_METRICS)
    for metric, shows in HELD_OUT_CURVES.items() if members and not curves else ():
        values = {name: [run.curve(metric) for run in runs] for name, runs in members.items()}
        draw_curves(values, shows, picture(shows), course=course)
    return files


def have_unequal_costs(token_curves: Sequence[Sequence[Curve]]) -> bool:
    """Whether conditions that have all counted their tokens used numbers of them that a picture would tell apart."""
    ends = [max(runs[0]) for runs in token_curves if runs]
    return bool(ends) and len(ends) == len(token_curves) and max(ends) > (1 + EQUAL_COSTS) * min(ends)


def spread_curve_over_tokens(runs: Sequence[FinishedRun], metric: str, kind: str) -> list[Curve]:
    """Return the curves of a condition's runs over tokens; none unless all runs have counted them.

    Each evaluation lies at the mean number of tokens that its runs had used by then.
    """
    if not all(run.tokens for run in runs):
        return []
    places = {place: round(np.mean([run.tokens[place][kind] for run in runs])) for place in runs[0].tokens}
    return [{position: run.metrics[place][metric] for place, position in places.items()} for run in runs]


def smoothed_curve(curve: Curve, window: int = 5) -> Curve:
    """Return the averages of a curve over windows of steps, each placed at its last step.

    Example:
        >>> smoothed_curve({1: 0.0, 2: 1.0, 3: 4.0}, window=2)
        {2: 0.5, 3: 4.0}

    """
    steps = sorted(curve)
    parts = [steps[start : start + window] for start in range(0, len(steps), window)]
    return {part[-1]: sum(curve[step] for step in part) / len(part) for part in parts}
