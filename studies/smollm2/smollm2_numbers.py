"""Numbers of the page on SmolLM2."""

from typing import Any

import count_plans
import find_tasks
import tabulate_mlflow_metrics
from docs.numbers import (
    RESULTS,
    Estimate,
    Rows,
    count_collapses,
    estimate_lead,
    pair_differences,
    parse_comparison,
    read_held_out,
    read_results,
    render_study,
    require_claim,
)
from docs.studies.noise import tabulate_noise
from docs.studies.oracle.tabulate_oracle import read_oracle_curves
from docs.studies.smollm2 import tabulate_run

from rlcredit.cards.leaderboard import render_leaderboard_table

MEASURED = "Monte Carlo, 8, optimal"
ENTROPY = "top 20 % entropy"
STEPS = 6
CRITIC = "smollm2_critic"


def find_row(rows: Rows, **keys: str) -> dict[str, str]:
    """Return the only row whose columns have some values."""
    (row,) = [row for row in rows if keys.items() <= row.items()]
    return row


def find_noise(stack: str, quantity: str) -> Estimate:
    """Return what was measured of the noise of a stack's gradients."""
    row = find_row(read_results("smollm2_noise"), stack=stack, quantity=quantity)
    return Estimate(*(float(row[name]) for name in ("estimate", "low", "high")))


def find_card_value(condition: str, finding: str) -> Estimate:
    """Return what one batch says of a condition."""
    row = find_row(read_results("smollm2_cards"), condition=condition)
    return Estimate(*(float(row[f"{finding}{end}"]) for end in ("", "_low", "_high")))


def collect_run_numbers() -> dict[str, Any]:
    """Return how the one run begins and ends."""
    rows = read_results("smollm2_run")
    solved = {row["step"]: float(row["pass_at_1"]) for row in rows}
    return {
        "run_table": tabulate_run.render_run_table(rows),
        "start": solved["0"],
        "after_10": solved["10"],
        "end": solved["20"],
        "points_gained": 100 * (solved["20"] - solved["0"]),
    }


def collect_task_numbers() -> dict[str, Any]:
    """Return what it solves before training, and how many levels can be learnt."""
    rows = read_results("smollm2_tasks")
    shown = [float(row["pass_at_1"]) for row in rows if row["asked"] == "shown"]
    require_claim(len(shown) == 18, "eighteen levels were asked")
    return {
        "task_table": find_tasks.render_level_table(rows),
        "levels_between": sum(0.1 <= share <= 0.6 for share in shown),
    }


def collect_plan_numbers() -> dict[str, Any]:
    """Return how many answers hold a phrase."""
    rows = read_results("smollm2_plans")
    phrases = find_row(rows, planner="18 phrases", answers="all")
    require_claim(phrases["with_a_plan"] == "0", "none of the answers of SmolLM2 holds one of the 18 phrases")
    return {
        "plan_table": count_plans.render_plan_table(rows),
        "answers_without_phrases": int(phrases["completions"]),
    }


def collect_oracle_numbers() -> dict[str, Any]:
    """Return what the oracle says before training, run by run."""
    curves = read_oracle_curves(RESULTS / "smollm2_oracle.csv", "oracle_few")
    first = {quantity: steps[0] for quantity, steps in curves.items()}
    require_claim(len(first["fork_fraction"]) == 3, "the oracle was asked three times before training")
    return {
        "surprisal_areas": first["surprisal_auc"],
        "entropy_areas": first["entropy_auc"],
        "flat_cosines": first["GRPO_cosine"],
        "gtpo_cosines": first["GTPO_cosine"],
        "fork_percent": [100 * share for share in first["fork_fraction"]],
    }


def collect_noise_numbers() -> dict[str, Any]:
    """Return how noisy gradients are."""
    return {
        "noise_table": tabulate_noise.render_noise_table(read_results("smollm2_noise")),
        "lowest_direction": min(find_noise(stack, "direction").low for stack in ("GTPO", ENTROPY)),
        "random_loss": -find_noise("random 20 %", "more_than_grpo"),
        "measured_gain": find_noise(MEASURED, "more_than_grpo"),
    }


def collect_card_numbers() -> dict[str, Any]:
    """Return what the card says."""
    return {
        "card_table": render_leaderboard_table(read_results("smollm2_cards")),
        "mask_moved": find_card_value("EntropyMask", "moved").mean,
        "mask_angle": find_card_value("EntropyMask", "angle"),
        "random_moved": find_card_value("RandomMask", "moved").mean,
        "random_angle": find_card_value("RandomMask", "angle"),
        "gtpo_within": find_card_value("GTPO", "cosine_within"),
        "gtpo_angle": find_card_value("GTPO", "angle"),
    }


def collect_campaign_numbers() -> dict[str, Any]:
    """Return how kinds of credit compare after six steps."""
    ahead = pair_differences("smollm2", "gtpo", "grpo", step=STEPS) > 0
    require_claim(len(ahead) == 6, "GTPO and GRPO have six pairs")
    require_claim(not ahead.any(), "GTPO is ahead of GRPO in none of six pairs")
    require_claim(count_collapses("smollm2", "measured") == (1, 6), "one of six runs of measured credit collapses")
    measured = estimate_lead("smollm2", "measured", "grpo", step=STEPS)
    return {
        "campaign_tables": render_study("smollm2"),
        "before": float(read_held_out("smollm2", "grpo", step=0).mean()),
        "random_deficit": estimate_lead("smollm2", "grpo", "random_mask", step=STEPS),
        "measured_lead": measured,
    }


def collect_critic_numbers() -> dict[str, Any]:
    """Return how the guarded critic compares with flat credit."""
    (row,) = read_results(f"{CRITIC}/comparisons")
    require_claim(row["verdict"].startswith("undecided"), "the critic is undecided on SmolLM2")
    require_claim(count_collapses(CRITIC, "calibrated") == (1, 6), "one of six runs of the critic collapses on SmolLM2")
    end = estimate_lead(CRITIC, "calibrated", "flat", step=10)
    return {"critic": {"table": render_study(CRITIC), "lead": parse_comparison(row), "end": end}}


def collect_precision_numbers() -> dict[str, Any]:
    """Return how it learns in bfloat16 and with a base of four bits."""
    rows = read_results("smollm2_precision")

    def find_bound(condition: str, metric: str, bound: str) -> float:
        return float(find_row(rows, condition=condition, metric=metric)[bound])

    return {
        "precision_table": tabulate_mlflow_metrics.render_range_table(rows),
        "bf16_start": find_bound("bf16", "val/pass_at_1", "lowest"),
        "bf16_end": find_bound("bf16", "val/pass_at_1", "highest"),
        "four_bit_start": find_bound("four_bit", "val/pass_at_1", "lowest"),
        "four_bit_end": find_bound("four_bit", "val/pass_at_1", "highest"),
        "bf16_smallest_ratio": find_bound("bf16", "train/ratio_min", "lowest"),
        "bf16_largest_ratio": find_bound("bf16", "train/ratio_max", "highest"),
    }


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of SmolLM2."""
    return {
        **collect_run_numbers(),
        **collect_task_numbers(),
        **collect_plan_numbers(),
        **collect_oracle_numbers(),
        **collect_noise_numbers(),
        **collect_card_numbers(),
        **collect_campaign_numbers(),
        **collect_critic_numbers(),
        **collect_precision_numbers(),
    }
