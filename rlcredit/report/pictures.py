"""The pictures of a family: how it learns, where it ends, what its policies are like."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlcredit.campaign.validation import ComparisonFamily
from rlcredit.report.comparison import ConditionComparison
from rlcredit.report.drawing import draw_curves, draw_forest_plot
from rlcredit.report.evidence import CampaignEvidence
from rlcredit.report.training import SHARES, SHOWN, Curve

HELD_OUT = {"val/entropy": "entropy of held-out samples, nats", "val/completion_length": "tokens per held-out sample"}
"""Drawn where no training curves are."""


def draw_family_pictures(
    evidence: CampaignEvidence,
    family: ComparisonFamily,
    compared: Sequence[ConditionComparison],
    curves: Mapping[tuple[str, int], Mapping[str, Curve]],
    out: Path,
    prefix: str,
) -> dict[str, str]:
    """Draw a family; conditions without runs are left out, and those that are measured otherwise than the baseline.

    Args:
        evidence: of the campaign.
        family: what is compared.
        compared: its comparisons.
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
    alike = [name for name in names if not evidence.list_metric_differences(name, family.baseline)]
    members = {name: runs for name in alike if (runs := evidence.runs_of(name))}
    if any(len(comparison.seeds) for comparison in compared):
        draw_forest_plot(compared, evidence.declaration.effect, picture(f"differences after step {steps}"))
    if members:
        held_out = {name: [run.curve(primary) for run in runs] for name, runs in members.items()}
        draw_curves(held_out, label_metric(primary), picture("learning curves"), share=True)
    for metric, shows in SHOWN.items():
        traced = {
            name: [curves.get((name, run.seed), {}).get(metric) for run in runs] for name, runs in members.items()
        }
        smooth = {name: [smoothed_curve(row) for row in rows if row] for name, rows in traced.items() if any(rows)}
        if smooth:
            draw_curves(smooth, shows, picture(f"{shows}, training"), share=metric in SHARES)
    for metric, shows in HELD_OUT.items() if members and not curves else ():
        values = {name: [run.curve(metric) for run in runs] for name, runs in members.items()}
        draw_curves(values, shows, picture(shows))
    return drawn


def label_metric(metric: str) -> str:
    """Return how a held-out metric is called in a picture.

    Example:
        >>> label_metric("val/pass_at_1")
        'pass@1'

    """
    return metric.removeprefix("val/").replace("_at_", "@")


def smoothed_curve(curve: Curve, window: int = 5) -> Curve:
    """Average a curve over the steps of every window, named by its last step.

    Example:
        >>> smoothed_curve({1: 0.0, 2: 1.0, 3: 4.0}, window=2)
        {2: 0.5, 3: 4.0}

    """
    steps = sorted(curve)
    parts = [steps[start : start + window] for start in range(0, len(steps), window)]
    return {part[-1]: sum(curve[step] for step in part) / len(part) for part in parts}
