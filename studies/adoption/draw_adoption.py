"""Draw the two pictures of the study of what is worth adopting, from its results: leads by area, and curves.

python -m studies.adoption.draw_adoption
"""

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
from rlcredit.campaign.declaration import ALPHA
from studies.adoption.adoption_numbers import STUDY, average_curves
from studies.adoption.declare_adoption import list_campaigns
from studies.credit_patterns.tabulate_oracle import space_out_labels
from studies.numbers import STUDIES, Rows, has_results, read_results

PICTURES = STUDIES / "pictures"

LINE_COLOURS = (INK_COLOUR, ACCENT_COLOUR, SECOND_COLOUR, BETTER_COLOUR, "#862e9c", MUTED_COLOUR)


def draw_leads(rows: Rows) -> None:
    """Draw the lead by area of every comparison, with its interval, in colour where it is decided after correction.

    Args:
        rows: Lines of the study's ``study.csv``.

    """
    figure = create_figure(9.0, 1.2 + 0.34 * len(rows))
    axes = figure.subplots()
    axes.axvline(0, color=INK_COLOUR, linewidth=1)
    for place, row in enumerate(reversed(rows)):
        mean, low, high = (100 * float(row[f"area_{name}"]) for name in ("difference", "low", "high"))
        is_decided = float(row["p_area_holm"]) <= ALPHA
        colour = (BETTER_COLOUR if mean > 0 else WORSE_COLOUR) if is_decided else INK_COLOUR
        axes.plot([low, high], [place, place], color=colour, linewidth=2)
        axes.plot(mean, place, "o", color=colour, markersize=5)
    axes.set_yticks(
        range(len(rows)),
        [f"{row['campaign']}: {row['condition']} against {row['baseline']}" for row in reversed(rows)],
        fontsize=8,
    )
    style_axes(axes, "Lead by area, in points, with 95 % intervals")
    axes.grid(visible=False)
    axes.grid(axis="x", color=GRID_COLOUR, linewidth=0.8)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(PICTURES / "adoption_leads.png", dpi=150)


def draw_curves() -> None:
    """Draw the mean curve of every condition, a panel for each finished campaign."""
    campaigns = [f"{name}_{policy}" for name, policy in list_campaigns() if has_results(f"{name}_{policy}/runs")]
    figure = create_figure(5.2 * min(2, len(campaigns)), 3.6 * -(-len(campaigns) // 2))
    panels: Any = figure.subplots(-(-len(campaigns) // 2), min(2, len(campaigns)), squeeze=False).flatten()
    for axes, campaign in zip(panels, campaigns, strict=False):
        draw_panel(axes, campaign)
    for axes in panels[len(campaigns) :]:
        axes.set_visible(False)
    figure.savefig(PICTURES / "adoption_curves.png", dpi=150)


def draw_panel(axes: Any, campaign: str) -> None:
    """Draw the curves of one campaign, each with its name at its end."""
    curves = sorted(average_curves(campaign).items(), key=lambda item: max(item[1].items())[1])
    labels = space_out_labels([max(curve.items())[1] for _, curve in curves], 0.05)
    for (name, curve), label, colour in zip(curves, labels, LINE_COLOURS, strict=False):
        places = [place / 1000 for place in curve]
        axes.plot(places, [*curve.values()], color=colour, linewidth=1.6)
        style: dict[str, Any] = {"color": colour, "fontsize": 8, "va": "center"}
        axes.annotate(name, (places[-1], label), (6, 0), textcoords="offset points", **style)
    end = max(curves[0][1]) / 1000
    style_axes(axes, campaign)
    axes.set(xlabel="thousand decoded tokens", ylabel="held-out pass@1", xlim=(0, 1.55 * end), ylim=(0, 1))
    axes.set_xticks(np.linspace(0, end, 3).round())


if __name__ == "__main__":
    draw_leads(read_results(f"{STUDY}/study"))
    draw_curves()
