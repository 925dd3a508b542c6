"""Numbers of the study of what token credit could gain."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from docs.numbers import (
    LENGTH,
    STEPS,
    Estimate,
    estimate_lead,
    list_leads_by_step,
    pair_area_differences,
    pair_differences,
    read_held_out,
    read_results,
    render_study,
    require_claim,
)

from rlcredit.statistics.t_test import welch_t_test

STUDIES = ("headroom_2_4", "headroom_6_8", "headroom_optimal_2_4", "headroom_optimal_6_8", "headroom_10_12")
OPTIMAL = {"short": "headroom_optimal_2_4", "middle": "headroom_optimal_6_8", "long": "headroom_10_12"}
VALUE = {"short": "headroom_2_4", "middle": "headroom_6_8"}
MASKED = {**VALUE, "long": "headroom_10_12"}
RATE = "headroom_rate_6_8"
COLLAPSE = 10
"""Points between two evaluations by which a run falls that collapses."""


def compare_lengths(longer: np.ndarray, shorter: np.ndarray) -> Estimate:
    """Return by how much the lead is larger on longer chains, with Welch's interval."""
    test = welch_t_test(longer, shorter)
    return Estimate(test.difference, test.interval.low, test.interval.high)


def measure_chains(study: str) -> dict[str, float]:
    """Return pass@1 before training, and how long completions are before and after."""
    return {
        "start": read_held_out(study, "c1_grpo", step=0).mean(),
        "length": read_held_out(study, "c1_grpo", LENGTH, 0).mean(),
        "trained_length": read_held_out(study, "c1_grpo", LENGTH).mean(),
    }


def measure_decoding() -> list[float]:
    """Return how many times the tokens of the completions were decoded for their continuations, by length of chains."""
    means = [
        {row["condition"]: float(row["mean"]) for row in read_results(name)}
        for name in ("decoded_tokens", "completion_length")
    ]
    decoded, lengths = means
    return [decoded[name] / (32 * lengths[name]) for name in ("mc_optimal_2", "mc_optimal_6", "mc_optimal_10")]


def measure_doubled_rate() -> dict[str, Any]:
    """Return what flat credit gains and loses by twice the learning rate."""
    steps = (0, *STEPS)
    curves = 100 * np.array([read_held_out(RATE, "grpo_lr_double", step=step) for step in steps])
    usual = 100 * np.array([read_held_out(RATE, "c1_grpo", step=step) for step in steps])
    falls = -np.diff(curves, axis=0).min(axis=0)
    ends = curves[-1] - usual[-1]
    collapsed = falls > COLLAPSE
    measured_ends = pair_differences("headroom_optimal_6_8", "monte_carlo_optimal")
    areas = pair_area_differences(RATE, "grpo_lr_double")
    measured_areas = pair_area_differences("headroom_optimal_6_8", "monte_carlo_optimal")
    early = pair_differences(RATE, "grpo_lr_double", step=25)
    require_claim((early > 0).all(), "twice the rate leads after 25 steps in all pairs")
    require_claim((np.diff(usual, axis=0) > -COLLAPSE).all(), "no run collapses at the usual rate")
    return {
        "early": estimate_lead(RATE, "grpo_lr_double", step=25),
        "runs": len(ends),
        "collapsed": int(collapsed.sum()),
        "falls": falls[collapsed],
        "ends_behind": sorted(-ends[collapsed]),
        "others_end": ends[~collapsed],
        "measured_end": measured_ends[~collapsed],
        "gaining": int((areas > 0).sum()),
        "areas": areas[areas > 0],
        "measured_areas": measured_areas[areas > 0],
    }


def share_of_mistakes(study: str) -> float:
    """Share of flat credit's wrong answers that measured credit takes away."""
    wrong = 100 * (1 - read_held_out(study, "c1_grpo").mean())
    return float(pair_differences(study, "monte_carlo_optimal").mean() / wrong)


def check_claims() -> None:
    """Hold the sentences without numbers to the runs."""
    for length in ("middle", "long"):
        ahead = [pair_differences(OPTIMAL[length], "monte_carlo_optimal", step=step) for step in STEPS]
        require_claim(np.all(np.array(ahead) > 0), f"measured credit leads in all pairs at all evaluations on {length}")
    for study in VALUE.values():
        for step in STEPS:
            lead = estimate_lead(study, "monte_carlo_credit", step=step)
            require_claim(lead.low < 0 < lead.high, "no interval of credit with the value as baseline excludes zero")
    short = [estimate_lead(OPTIMAL["short"], "monte_carlo_optimal", step=step).low > 0 for step in STEPS]
    require_claim(short == [False, True, True, True], "on short chains the first could be chance, the others not")


def list_steps_of_length(values: Sequence[np.ndarray]) -> list[Estimate]:
    """Return what every step of length adds."""
    return [compare_lengths(longer, shorter) for shorter, longer in pairwise(values)]


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the study."""
    check_claims()
    masked = pair_differences("headroom_6_8", "grpo_random_mask")
    flat_long = [read_held_out("headroom_10_12", "c1_grpo", step=step).mean() for step in (75, 100)]
    return {
        "tables": {name: render_study(name) for name in (*STUDIES, RATE)},
        "optimal": {name: estimate_lead(study, "monte_carlo_optimal") for name, study in OPTIMAL.items()},
        "optimal_by_step": {name: list_leads_by_step(study, "monte_carlo_optimal") for name, study in OPTIMAL.items()},
        "value": {name: estimate_lead(study, "monte_carlo_credit") for name, study in VALUE.items()},
        "value_by_step": {name: list_leads_by_step(study, "monte_carlo_credit") for name, study in VALUE.items()},
        "masked": {name: estimate_lead(study, "grpo_random_mask") for name, study in MASKED.items()},
        "masked_worst": masked.min(),
        "masked_median": float(np.median(masked)),
        "masked_end": read_held_out("headroom_10_12", "grpo_random_mask").min(),
        "chains": {name: measure_chains(study) for name, study in OPTIMAL.items()},
        "area_steps": list_steps_of_length(
            [pair_area_differences(each, "monte_carlo_optimal") for each in OPTIMAL.values()]
        ),
        "end_steps": list_steps_of_length([pair_differences(each, "monte_carlo_optimal") for each in OPTIMAL.values()]),
        "late_gain": 100 * (flat_long[1] - flat_long[0]),
        "mistakes": [100 * share_of_mistakes(study) for study in OPTIMAL.values()],
        "decoding": measure_decoding(),
        "rate": measure_doubled_rate(),
    }
