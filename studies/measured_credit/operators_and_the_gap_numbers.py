"""Numbers of the study of what share of the gap the operators close."""

from typing import Any

from studies.measured_credit.noise_numbers import find_estimate
from studies.measured_credit.tabulate_headroom import render_headroom_table
from studies.numbers import (
    ENTROPY,
    estimate_lead,
    find_results,
    list_deficits,
    pair_area_differences,
    pair_differences,
    read_held_out,
    read_results,
    require_claim,
)

SHARED = ("c2_grpo_gtpo", "c3_grpo_hicra", "c4_grpo_sepa")
"""Stacks that hold GTPO."""
OPERATORS = (*SHARED, "delight", "hard_delight_20")
SHORT = "tiny_study"
MIDDLE = "headroom_operators_6_8"
LONG = "headroom_operators_10_12"


def render_gap_shares(measured: str, operators: str) -> str:
    """Return the table of the shares of the gap that the operators close, in Markdown."""
    folders = [find_results(name) for name in (measured, operators)]
    return render_headroom_table("monte_carlo_optimal", folders)


def check_claims() -> None:
    """Hold the sentences without numbers to the runs."""
    for study in (MIDDLE, LONG):
        for row in read_results(f"{study}/comparisons"):
            require_claim(row["verdict"] == "worse", f"{row['condition']} of {study} ends worse")
    for study, condition in ((MIDDLE, "c3_grpo_hicra"), (MIDDLE, "c4_grpo_sepa"), (LONG, "c4_grpo_sepa")):
        lead = estimate_lead(study, condition, "c2_grpo_gtpo")
        require_claim(lead.low < 0 < lead.high, f"{condition} of {study} does not differ from GTPO alone")


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the study."""
    check_claims()
    differences = [pair_differences(MIDDLE, name) for name in OPERATORS]
    short_areas = [-pair_area_differences(SHORT, name).mean() for name in SHARED]
    noise = read_results("noise")
    keys = {"terms": "6-8", "completions": "8", "quantity": "more_than_grpo"}
    return {
        "shares": {
            "middle": render_gap_shares("headroom_optimal_6_8", MIDDLE),
            "long": render_gap_shares("headroom_10_12", LONG),
        },
        "deficits": list_deficits(MIDDLE, OPERATORS),
        "pairs": sum(len(each) for each in differences),
        "pairs_behind": sum(int((each < 0).sum()) for each in differences),
        "sepa_beyond_gtpo": estimate_lead(MIDDLE, "c4_grpo_sepa", "c2_grpo_gtpo"),
        "hicra_beyond_gtpo": estimate_lead(MIDDLE, "c3_grpo_hicra", "c2_grpo_gtpo"),
        "long_sepa_beyond_gtpo": estimate_lead(LONG, "c4_grpo_sepa", "c2_grpo_gtpo"),
        "short_deficits": list_deficits(SHORT, SHARED),
        "short_area_deficits": short_areas,
        "short_delight": -estimate_lead(SHORT, "delight"),
        "short_hard_delight": -estimate_lead(SHORT, "hard_delight_20"),
        "delight_noise": find_estimate(noise, stack="Delight", **keys),
        "gtpo_noise": -find_estimate(noise, stack="GTPO", **keys),
        "entropy": {
            "start": read_held_out(MIDDLE, "delight", ENTROPY, 0).mean(),
            "flat": read_held_out("headroom_6_8", "c1_grpo", ENTROPY).mean(),
            "gtpo": read_held_out(MIDDLE, "c2_grpo_gtpo", ENTROPY).mean(),
            "delight": read_held_out(MIDDLE, "delight", ENTROPY).mean(),
        },
    }
