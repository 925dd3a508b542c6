"""Numbers of the page on ERPO, EP-GRPO, EAPO, TEPO, and on what the first study left out."""

from typing import Any

import numpy as np
import tabulate_mlflow_metrics
from docs.numbers import (
    ENTROPY,
    LENGTH,
    Estimate,
    count_collapses,
    estimate_area_lead,
    estimate_lead,
    pair_differences,
    read_held_out,
    read_results,
    render_study,
    require_claim,
)

CAMPAIGNS = ("seed_001", "seed_002", "seed_003", "seed_004", "tiny_study_2")
GRPO = ("grpo_std", "c1_grpo")
LAST = {"seed_002": 400, "seed_003": 400}
"""Last step of the campaigns that do not end at 100."""


def render_logged_metric(name: str) -> str:
    """Return the table of a metric that was copied out of a database."""
    return tabulate_mlflow_metrics.render_logged_table(read_results(name))


def read_comparison(study: str, condition: str, baseline: str) -> dict[str, str]:
    """Return the row of one comparison of a campaign."""
    (row,) = [
        row
        for row in read_results(f"{study}/comparisons")
        if (row["condition"], row["baseline"]) == (condition, baseline)
    ]
    return row


def estimate_deficit(study: str, condition: str, baseline: str) -> Estimate:
    """Return by how many points a condition ends behind a baseline."""
    return estimate_lead(study, baseline, condition, step=LAST.get(study, 100))


def average_metric(study: str, condition: str, metric: str = "val/pass_at_1", step: int | None = None) -> float:
    """Return the mean of a held-out metric over the runs of a condition, at the last step if none is given."""
    values = read_held_out(study, condition, metric, LAST.get(study, 100) if step is None else step)
    return float(values.mean())


def compare_metric(study: str, condition: str, baseline: str, metric: str) -> dict[str, Any]:
    """Return a held-out metric under a condition and under a baseline, and the paired difference."""
    return {
        "own": average_metric(study, condition, metric),
        "base": average_metric(study, baseline, metric),
        "difference": estimate_lead(study, condition, baseline, metric, LAST.get(study, 100)),
    }


def require_behind_in_all_pairs(study: str, condition: str, baseline: str) -> None:
    """Refuse to say that a condition is behind in all eight pairs where it is not."""
    behind = pair_differences(study, condition, baseline, step=LAST.get(study, 100)) < 0
    require_claim(len(behind) == 8 and behind.all(), f"{condition} is behind {baseline} in all eight pairs")


def count_fallen_variants() -> dict[str, Any]:
    """Return in how many variants of ERPO and EP-GRPO runs collapsed, and of how many runs of GRPO none did."""
    rows = [row for study in ("seed_001", "seed_004") for row in read_results(f"{study}/conditions")]
    counts = [int(row["collapsed"]) for row in rows if row["condition"] not in GRPO]
    grpo = {row["condition"]: row for row in rows if row["condition"] in GRPO}.values()
    require_claim(not any(int(row["collapsed"]) for row in grpo), "no run of GRPO collapses beside ERPO and EP-GRPO")
    return {
        "variants": len(counts),
        "fallen": [count for count in counts if count],
        "grpo_runs": sum(int(row["runs"]) for row in grpo),
    }


def collect_erpo_numbers() -> dict[str, Any]:
    """Return the numbers of ERPO."""
    study = "seed_001"
    ends = read_held_out(study, "erpo")
    deficits = pair_differences(study, "grpo_std", "erpo")
    mean_only = read_comparison(study, "erpo_mean_only", "c1_grpo")
    readings = ("erpo", "erpo_ungated", "erpo_third_party", "erpo_mean_only")
    collapsed = [count_collapses(study, condition)[0] for condition in readings]
    require_claim(sorted(collapsed) == [0, 0, 2, 2], "two of four readings of ERPO collapse in two runs")
    return {
        "third_party_deficit": estimate_deficit(study, "erpo_third_party", "grpo_std"),
        "lowest": ends.min(),
        "deficit_of_others": deficits[ends > ends.min()].mean(),
        "ungated_lowest": sorted(read_held_out(study, "erpo_ungated"))[:2],
        "mean_only_collapsed": int(mean_only["collapsed"]),
        "mean_only_behind": int((pair_differences(study, "erpo_mean_only") < 0).sum()),
        "mean_only_p_sign_flip": float(mean_only["p_sign_flip"]),
        "mean_only_p": float(mean_only["p_holm"]),
        "comparisons": len(read_results(f"{study}/comparisons")),
        "without_anchor": estimate_lead(study, "erpo_no_anchor", "erpo"),
        "entropy": compare_metric(study, "erpo", "grpo_std", ENTROPY),
        "length": compare_metric(study, "erpo", "grpo_std", LENGTH),
    }


def collect_ep_grpo_numbers() -> dict[str, Any]:
    """Return the numbers of EP-GRPO."""
    study = "seed_004"
    require_behind_in_all_pairs(study, "ep_grpo", "grpo_std")
    worse = read_comparison(study, "ep_grpo", "grpo_std")
    silent = read_comparison(study, "ep_grpo_silent", "ep_grpo")
    require_claim(worse["verdict"] == "worse", "EP-GRPO is worse than GRPO")
    require_claim(silent["collapsed"] == "0", "no run of ep_grpo_silent collapses")
    return {
        "third_party_deficit": estimate_deficit(study, "ep_grpo_third_party", "grpo_std"),
        "p": float(worse["p_holm"]),
        "collapsed": int(worse["collapsed"]),
        "comparisons": len(read_results(f"{study}/comparisons")),
        "ungated_collapsed": int(read_comparison(study, "ep_grpo_ungated", "grpo_std")["collapsed"]),
        "silent_lead": estimate_lead(study, "ep_grpo_silent", "ep_grpo"),
        "area_deficit": estimate_area_lead(study, "grpo_std", "ep_grpo"),
        "third_party_area": estimate_area_lead(study, "ep_grpo_third_party", "grpo_std"),
    }


def lone_advantage(right: int, size: int = 8) -> float:
    """Divided advantage of a right answer in a group in which some are right."""
    verdicts = np.array([1.0] * right + [0.0] * (size - right))
    return float((1 - verdicts.mean()) / verdicts.std(ddof=1))


def collect_eapo_numbers() -> dict[str, Any]:
    """Return the numbers of EAPO."""
    study = "seed_002"
    low = ("eapo_base_plr", "eapo_base_nlr")
    for condition in low:
        require_behind_in_all_pairs(study, condition, "eapo_base")
    (corrected,) = {read_comparison(study, condition, "eapo_base")["p_holm"] for condition in low}
    return {
        "lead": estimate_lead(study, "eapo", "eapo_base", step=400),
        "quadrants": {name: average_metric(study, f"eapo_base_{name}") for name in ("phr", "nhr", "plr", "nlr")},
        "quadrant_deficits": [estimate_deficit(study, condition, "eapo_base") for condition in low],
        "start": average_metric(study, "eapo_base", step=0),
        "smallest_p": min(float(row["p_sign_flip"]) for row in read_results(f"{study}/comparisons")),
        "corrected_p": float(corrected),
        "comparisons": len(read_results(f"{study}/comparisons")),
        "entropy": compare_metric(study, "eapo", "eapo_base", ENTROPY),
        "bonus_entropy": compare_metric(study, "eapo_base_entropy_bonus", "eapo_base", ENTROPY),
        "lone_advantage": lone_advantage(1),
        "common_advantage": lone_advantage(7),
    }


def collect_tepo_numbers() -> dict[str, Any]:
    """Return the numbers of TEPO."""
    study = "seed_003"
    return {
        "lowest_of_grpo": sorted(read_held_out(study, "grpo_clipped", step=400))[:2],
        "area": estimate_area_lead(study, "tepo", "grpo_clipped"),
        "area_without_kl": estimate_area_lead(study, "tepo_no_kl", "grpo_clipped"),
        "halfway": average_metric(study, "tepo", step=200),
        "grpo_halfway": average_metric(study, "grpo_clipped", step=200),
        "grpo_end": average_metric(study, "grpo_clipped"),
        "entropy": compare_metric(study, "tepo", "grpo_clipped", ENTROPY),
        "entropy_without_kl": average_metric(study, "tepo_no_kl", ENTROPY),
    }


def collect_sepa_numbers() -> dict[str, Any]:
    """Return the numbers of what the SEPA paper claims beside the first study."""
    study = "tiny_study_2"
    require_behind_in_all_pairs(study, "c8_delay_10", "c5_maxrl")
    return {
        "delay_deficit": estimate_deficit(study, "c8_delay_10", "c5_maxrl"),
        "first_deficit": estimate_deficit("tiny_study", "c8_maxrl_sepa", "c5_maxrl"),
        "amplification_deficit": estimate_deficit(study, "maxrl_amplification", "c5_maxrl"),
        "clamped_deficit": estimate_deficit(study, "maxrl_amplification_clamped", "c5_maxrl"),
        "mined_area": estimate_area_lead(study, "maxrl_sepa_mined", "c8_maxrl_sepa"),
        "scaled_deficit": estimate_deficit(study, "delight_scale", "c1_grpo"),
        "zscored_deficit": estimate_deficit(study, "delight_zscore", "c1_grpo"),
        "ramped_deficit": estimate_deficit(study, "delight_ramped", "c1_grpo"),
        "hard_deficit": estimate_deficit(study, "hard_delight_40", "c1_grpo"),
        "scaled_entropy": average_metric(study, "delight_scale", ENTROPY),
        "zscored_entropy": average_metric(study, "delight_zscore", ENTROPY),
        "grpo_entropy": average_metric(study, "c1_grpo", ENTROPY),
    }


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the five papers."""
    return {
        "tables": {study: render_study(study) for study in CAMPAIGNS},
        "process_term": render_logged_metric("process_term"),
        "eapo_bound": render_logged_metric("eapo_bound"),
        "collapses": count_fallen_variants(),
        "erpo": collect_erpo_numbers(),
        "ep_grpo": collect_ep_grpo_numbers(),
        "eapo": collect_eapo_numbers(),
        "tepo": collect_tepo_numbers(),
        "sepa": collect_sepa_numbers(),
    }
