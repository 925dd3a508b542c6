"""Numbers of the study of what is worth adopting; a table whose results are missing says so."""

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from rlcredit.campaign.record_schema import TOKEN_KINDS
from rlcredit.pages.number_formats import format_p_value
from rlcredit.pages.tables import Table
from studies.adoption.declare_adoption import list_campaigns
from studies.critics.declare_rounds import read_areas, render_area_table
from studies.lead_tables import format_lead
from studies.numbers import (
    PASS,
    Estimate,
    Rows,
    format_percent,
    has_results,
    parse_comparison,
    read_results,
    render_if_run,
    require_claim,
)

STUDY = "adoption"
"""Results of the report over all campaigns."""


def parse_lead(row: Mapping[str, str], measure: str) -> Estimate:
    """Return a lead at the end or by area, in points."""
    return Estimate(*(100 * float(row[f"{measure}_{name}"]) for name in ("difference", "low", "high")))


def format_measured(row: Mapping[str, str], measure: str) -> tuple[str, str]:
    """Return a lead at the end or by area in points, and its p, corrected over the study."""
    return format_lead(parse_lead(row, measure)), format_p_value(float(row[f"p_{measure}_holm"]))


def tabulate_comparisons(rows: Rows) -> str:
    """Return the table of all comparisons: area and end, each corrected, the declared steadiness, and the verdict.

    Args:
        rows: Lines of the study's ``study.csv``.

    """
    lines = []
    steadiness = any(row["measure"] == "steadiness" for row in rows)
    for row in rows:
        declared = [format_lead(parse_comparison(row)) if row["measure"] == "steadiness" else ""] * steadiness
        verdict = f"{row['verdict_study'].partition(':')[0]}, {format_p_value(float(row['p_study']))}"
        arms = (f"`{row['campaign']}`", row["condition"], row["baseline"])
        collapsed = read_leads(row["campaign"])[row["condition"]]["collapsed"]
        leads = (*format_measured(row, "area"), *format_measured(row, "end"))
        lines.append([*arms, *leads, *declared, f"{collapsed} of {row['pairs']}", verdict])
    heads = ["campaign", "condition", "against", "area", "p", "end", "p", *["steadiness"] * steadiness]
    return Table([*heads, "collapsed", "verdict, p"], lines).to_markdown()


def tabulate_costs(rows: Rows) -> str:
    """Return the tokens of a run by kind, as multiples of the baseline's."""
    heads = ["campaign", "condition", "against", *TOKEN_KINDS]
    lines = []
    for row in rows:
        ratios = [row[f"{kind}_ratio"] for kind in TOKEN_KINDS]
        arms = (f"`{row['campaign']}`", row["condition"], row["baseline"])
        lines.append([*arms, *(f"{float(ratio):.2f}" if ratio else "none" for ratio in ratios)])
    return Table(heads, lines).to_markdown()


def tabulate_collapses(rows: Rows) -> str:
    """Return a table of the collapses of every arm over its campaigns."""
    lines = [
        [
            *(row["condition"], f"{row['collapsed']} of {row['runs']}"),
            " to ".join(format_percent(float(row[end])) for end in ("low", "high")),
        ]
        for row in rows
    ]
    return Table(["condition", "collapsed", "95 %"], lines).to_markdown()


def tabulate_candidates(rows: Rows) -> str:
    """Return the leads of the candidates on their cards, in points, the largest by area first.

    Args:
        rows: Lines of the leaderboard of their cards.

    """
    lines = []
    for row in sorted(rows, key=lambda row: -float(row["area_gain"])):
        leads = (
            format_lead(Estimate(*(float(row[f"{kind}{end}"]) for end in ("", "_low", "_high"))))
            for kind in ("area_gain", "gain")
        )
        lines.append([row["condition"], *leads, f"{float(row['collapses']):.0f}"])
    return Table(["candidate", "area", "end", "collapsed"], lines).to_markdown()


def read_control_leads() -> dict[str, Estimate]:
    """Return the leads by area of rollouts used twice over smaller batches, in points.

    Raises:
        ValueError: one of them is not decided.

    """
    rows = read_results("batches_long_chains/comparisons")
    require_claim({row["verdict"] for row in rows} == {"worse"}, "rollouts used twice lead every smaller batch")
    return {row["condition"]: -parse_comparison(row) for row in rows}


def read_leads(campaign: str) -> dict[str, dict[str, Any]]:
    """Return the leads of every arm of a campaign over its baseline, declared ones too, in points, and its costs."""
    return {
        row["condition"]: {
            **{measure: parse_lead(row, measure) for measure in ("area", "end")},
            "declared": parse_comparison(row),
            "collapsed": int(row["collapsed"]),
            "trained": float(row["backward_ratio"]),
        }
        for row in read_results(f"{campaign}/comparisons")
    }


def read_shapes() -> dict[str, dict[str, Estimate]]:
    """Return what was measured of gradients, before training and later: by shape, credit and quantity.

    Raises:
        ValueError: more prompts are shown to have less noise under the critic, so that the comparison is to be run.

    """
    rows = read_results("shapes")
    stages = {"0": "start", max(row["rollouts"] for row in rows): "later"}
    shapes: dict[str, dict[str, Estimate]] = {stage: {} for stage in stages.values()}
    for row in rows:
        estimate = Estimate(*(float(row[name]) for name in ("estimate", "low", "high")))
        shapes[stages[row["rollouts"]]][f"{row['credit']}_{row['shape']}_{row['quantity']}"] = estimate
    gains = [found["critic_16_by_2_more"] for found in shapes.values()]
    require_claim(all(gain.low <= 0 for gain in gains), "more prompts are not shown to have less noise")
    return shapes


def average_curves(campaign: str) -> Mapping[str, Mapping[int, float]]:
    """Return the mean held-out pass@1 of every condition over its runs, by decoded tokens."""
    values: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read_results(f"{campaign}/runs"):
        values[row["condition"]][int(row["budget"])].append(float(row[PASS]))
    return {name: {place: fmean(found) for place, found in sorted(curve.items())} for name, curve in values.items()}


def render_rates(name: str, policy: str) -> str:
    """Return the mean area of every rate that was tried for a comparison on a policy."""
    grids = [f"{name}_{part}_{policy}" for part in ("rates", "rates_more")]
    return render_area_table(read_areas([grid for grid in grids if has_results(f"{grid}/runs")]))


def collect_numbers() -> dict[str, Any]:
    """Return the numbers and tables of the page."""
    curves = average_curves("sparse_hinted")
    return {
        "comparisons": render_if_run(f"{STUDY}/study", lambda: tabulate_comparisons(read_results(f"{STUDY}/study"))),
        "costs": render_if_run(f"{STUDY}/study", lambda: tabulate_costs(read_results(f"{STUDY}/study"))),
        "collapses": render_if_run(
            f"{STUDY}/collapses", lambda: tabulate_collapses(read_results(f"{STUDY}/collapses"))
        ),
        "candidates": tabulate_candidates(read_results("candidates/leaderboard")),
        "control_leads": read_control_leads(),
        "sparse": read_leads("sparse_hinted"),
        "falls": read_leads("falls_long_chains"),
        "shapes": read_shapes(),
        "start": curves["reused"][0],
        "first_marks": {name: list(curve.values())[1] for name, curve in curves.items()},
        "rates": {
            f"{name}_rates_{policy}": render_if_run(
                f"{name}_rates_{policy}/runs", lambda one=name, other=policy: render_rates(one, other)
            )
            for name, policy in list_campaigns()
        },
    }
