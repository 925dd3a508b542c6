"""Numbers of the study of the paper's contrasts on the embedded policy."""

from typing import Any

import numpy as np
from docs.numbers import (
    ENTROPY,
    LENGTH,
    PASS,
    RESULTS,
    Estimate,
    count_collapses,
    count_conclusions,
    estimate_area_lead,
    estimate_lead,
    list_conclusions,
    list_deficits,
    pair_differences,
    read_held_out,
    read_results,
    render_study,
    require_claim,
    student_estimate,
)
from docs.studies.published_tables.tabulate_published import read_published_runs
from docs.studies.replication.tabulate_areas import conclude_areas
from docs.tabulate_study import Columns

from rlcredit.pages.number_formats import format_p_value
from rlcredit.statistics.collapse import clopper_pearson_limit
from rlcredit.statistics.t_test import welch_t_test

STUDY = "tiny_study"
LEAD = "sepa_lead"
BEST = "headline_best"
ON_GRPO = ("c2_grpo_gtpo", "c3_grpo_hicra", "c4_grpo_sepa")
ON_MAXRL = ("c6_maxrl_gtpo", "c7_maxrl_hicra", "c8_maxrl_sepa", "maxrl_sepa_hicra")
SIGNALS = {"entropy": "maxrl_sepa_entropy", "predictive_variance": "maxrl_sepa_predictive_variance"}


def find_comparison(family: str, condition: str) -> dict[str, str]:
    """Return the row of a comparison."""
    (row,) = [
        row for row in read_results(f"{STUDY}/comparisons") if (row["family"], row["condition"]) == (family, condition)
    ]
    return row


def measure_published_mask() -> Estimate:
    """Return the paper's difference between MaxRL with a mask and GRPO, in points, with Welch's interval."""
    runs = {key[:2]: values for key, (_, values) in read_published_runs(RESULTS / "published.csv").items()}
    test = welch_t_test(100 * runs["4B, entropy mask", "arm"], 100 * runs["4B, entropy mask", "baseline"])
    return Estimate(test.difference, test.interval.low, test.interval.high)


def count_equal_runs(condition: str, other: str) -> int:
    """Return how many runs of two conditions have the same held-out evaluations after the last step."""
    same = [read_held_out(STUDY, condition, metric) == read_held_out(STUDY, other, metric) for metric in (PASS, LENGTH)]
    return int(np.logical_and(*same).sum())


def list_spreads() -> dict[str, float]:
    """Return standard deviations after the last step, in points, by what varies."""
    rows = [row for row in read_results(f"{STUDY}/variance") if row["of"] != "all evaluations"]
    return {row["factor"]: 100 * float(row["variance"]) ** 0.5 for row in rows}


def collect_early_lead() -> dict[str, Any]:
    """Return how SEPA with constant lambda leads on the way."""
    return {f"after_{step}": estimate_lead(LEAD, "sepa_constant", "flat", step=step) for step in (20, 40, 60)}


def collect_best_rates() -> dict[str, Any]:
    """Return what conditions end behind flat credit, each at its best rate, if the three are those that pages name."""
    worse = list_conclusions(BEST, "worse")
    require_claim(worse == ["gtpo", "sepa_constant", "delight_scaled"], f"{worse} are worse at their best rates")
    require_claim(count_collapses(BEST, "sepa_constant") == (1, 8), "one run of SEPA at constant lambda collapses")
    return {name: estimate_lead(BEST, name, "flat") for name in worse}


def render_area_columns(study: str) -> Columns:
    """Return what areas show in every comparison of a study, as further columns of its tables."""
    found = conclude_areas(RESULTS / study)
    return {
        "area, p": {key: format_p_value(each.p) for key, each in found.items()},
        "by area": {key: each.words for key, each in found.items()},
    }


def collect_pass_at_2() -> dict[str, Any]:
    """Return how MaxRL compares with GRPO at pass@2, in points."""
    early, late = (
        student_estimate(100 * pair_differences(STUDY, "c5_maxrl", "c1_grpo", "val/pass_at_k", step))
        for step in (50, 100)
    )
    require_claim(early.high < 0 and late.low < 0 < late.high, "MaxRL is behind at pass@2 on the way, level at the end")
    return {"early": early, "late": late}


def count_area_conclusions(study: str) -> dict[str, int]:
    """Return how many comparisons of a study areas decide, in which way, and how many of them ends leave undecided."""
    found = list(conclude_areas(RESULTS / study).values())
    decided = [each for each in found if each.words != "undecided"]
    return {
        "compared": len(found),
        "decided": len(decided),
        **{words: sum(each.words == words for each in found) for words in ("faster", "slower")},
        "undecided_at_the_end": sum(each.end.startswith("undecided") for each in decided),
    }


def check_claims() -> None:
    """Hold the sentences without numbers to the results."""
    collapsed = [row for row in read_results(f"{STUDY}/conditions") if int(row["collapsed"])]
    require_claim(not collapsed, "no run of the replication collapses")
    on_maxrl = [find_comparison("composition on MaxRL", name)["verdict"] for name in ON_MAXRL]
    require_claim(
        [verdict.split(":")[0] for verdict in on_maxrl] == ["undecided", "worse", "undecided", "worse"],
        "HICRA and the stack of three are worse on MaxRL, and GTPO and SEPA undecided",
    )
    for names, baseline in ((ON_GRPO, "c1_grpo"), (ON_MAXRL, "c5_maxrl")):
        for name in names:
            require_claim(estimate_area_lead(STUDY, name, baseline).high < 0, f"{name} learns more slowly")
    for name in SIGNALS.values():
        ahead = pair_differences(STUDY, name, "c5_maxrl", step=50).mean()
        require_claim(1.5 < ahead < 2.5, f"{name} is two points ahead of MaxRL after 50 steps")


def collect_signals() -> dict[str, Any]:
    """Return how SEPA on other signals compares."""
    return {
        name: {
            "area": estimate_area_lead(STUDY, condition, "c8_maxrl_sepa"),
            "beyond_maxrl": estimate_lead(STUDY, condition, "c5_maxrl"),
            "worst": read_held_out(STUDY, condition).min(),
        }
        for name, condition in SIGNALS.items()
    }


def collect_lengths() -> dict[str, Any]:
    """Return the tokens of a completion after the last step, of baselines and of stacks on them."""
    return {
        "grpo": read_held_out(STUDY, "c1_grpo", LENGTH).mean(),
        "on_grpo": [read_held_out(STUDY, name, LENGTH).mean() for name in ON_GRPO],
        "maxrl": read_held_out(STUDY, "c5_maxrl", LENGTH).mean(),
        "on_maxrl": [read_held_out(STUDY, name, LENGTH).mean() for name in ON_MAXRL],
    }


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the study."""
    check_claims()
    conclusions = count_conclusions(STUDY)
    contrast = [estimate_lead(STUDY, name) for name in ("c7_maxrl_hicra", "c8_maxrl_sepa")]
    mask = find_comparison("masks", "entropy_mask_published")
    return {
        "tables": {STUDY: render_study(STUDY, render_area_columns(STUDY)), LEAD: render_study(LEAD)},
        "by_area": {study: count_area_conclusions(study) for study in (STUDY, "tiny_study_2")},
        "conclusions": {name: conclusions[name] for name in ("better", "worse", "equivalent", "undecided")},
        "runs": sum(int(row["runs"]) for row in read_results(f"{STUDY}/conditions")),
        "clean_limit": clopper_pearson_limit(0, 8),
        "maxrl_deficits": list_deficits(STUDY, ON_MAXRL, "c5_maxrl"),
        "contrast": [-each for each in contrast],
        "contrast_gain": max(each.high for each in contrast),
        "on_grpo_areas": [-estimate_area_lead(STUDY, name) for name in ON_GRPO],
        "maxrl_area": -estimate_area_lead(STUDY, "c5_maxrl"),
        "pass_at_2": collect_pass_at_2(),
        "published_mask": estimate_lead(STUDY, "entropy_mask_published", "c5_maxrl"),
        "published_mask_equivalence": float(mask["p_equivalence_holm"]),
        "paper_mask": measure_published_mask(),
        "equal_to_capped": count_equal_runs("grpo_sepa_cap5", "c4_grpo_sepa"),
        "fourfold_area": estimate_area_lead(STUDY, "grpo_lr_fourfold"),
        "fourfold": estimate_lead(STUDY, "grpo_lr_fourfold"),
        "delight": -estimate_lead(STUDY, "delight"),
        "hard_delight": -estimate_lead(STUDY, "hard_delight_20"),
        "entropy": {
            "start": read_held_out(STUDY, "c1_grpo", ENTROPY, 0).mean(),
            "flat": read_held_out(STUDY, "c1_grpo", ENTROPY).mean(),
            "delight": read_held_out(STUDY, "delight", ENTROPY).mean(),
        },
        "lengths": collect_lengths(),
        "by_signal": collect_signals(),
        "planner": estimate_lead(STUDY, "c8_maxrl_sepa", "random_planner"),
        "planner_area": estimate_area_lead(STUDY, "c8_maxrl_sepa", "random_planner"),
        "random_mask": estimate_lead(STUDY, "random_mask", "c5_maxrl"),
        "early_lead": collect_early_lead(),
        "best_rates": collect_best_rates(),
        "spreads": list_spreads(),
        "settled": sum(conclusions[name] for name in ("better", "worse", "equivalent")),
        "compared": sum(conclusions.values()),
    }
