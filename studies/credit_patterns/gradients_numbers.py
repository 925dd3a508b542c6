"""Numbers of the page on how far an operator turns the update."""

import math
from typing import Any

import numpy as np

from rlcredit.cards.ranking import SHIPPED_CARDS
from studies.credit_patterns import tabulate_gradients
from studies.csv_rows import read_csv_rows
from studies.numbers import read_results, require_claim

VERSUS = "this_stack_vs_"
HARD = "hard Delight 20 %"
ENTROPY = "top 20 % entropy"


def read_quantities() -> dict[tuple[str, str], np.ndarray]:
    """Return the values of every quantity and seed over the steps at which they were measured."""
    values: dict[tuple[str, str], list[float]] = {}
    for row in read_results("gradients"):
        values.setdefault((row["quantity"], row["seed"]), []).append(float(row["value"]))
    return {key: np.array(each) for key, each in values.items()}


def list_mean_angles(kind: str = "raw") -> dict[str, list[float]]:
    """Return the mean angle of every stack against GRPO, seed by seed."""
    angles: dict[str, list[float]] = {}
    for (quantity, _), values in read_quantities().items():
        if quantity.startswith(VERSUS) and quantity.endswith(f"_{kind}_degrees"):
            stack = quantity.removeprefix(VERSUS).removesuffix(f"_{kind}_degrees")
            angles.setdefault(stack, []).append(float(values.mean()))
    return angles


def list_largest_angles(stack: str) -> list[float]:
    """Return the largest angle of a stack against GRPO in any step, seed by seed."""
    return [
        float(values.max())
        for (quantity, _), values in read_quantities().items()
        if quantity == f"{VERSUS}{stack}_raw_degrees"
    ]


def list_length_ratios(stack: str) -> list[float]:
    """Return the length of a stack's gradient relative to GRPO's, seed by seed."""
    return [
        float(1 / values.mean())
        for (quantity, _), values in read_quantities().items()
        if quantity == f"{VERSUS}{stack}_raw_norm_ratio"
    ]


def list_prompt_angles() -> list[float]:
    """Return the angle between two batches of GRPO, seed by seed."""
    return [
        tabulate_gradients.mean_angle_degrees(values)
        for (quantity, _), values in read_quantities().items()
        if quantity == "full_cosine"
    ]


def collect_toy_numbers() -> dict[str, Any]:
    """Return the numbers of the toy."""
    rows = read_results("gradients_toy")

    def average(stack: str, quantity: str) -> float:
        return float(np.mean([float(row[quantity]) for row in rows if row["stack"] == stack]))

    delight = average("Delight", "raw_cosine")
    maxrl = average("MaxRL", "raw_cosine")
    require_claim(round(maxrl, 3) == 1, "MaxRL and GRPO have a cosine of 1.000 in the toy")
    return {
        "table": tabulate_gradients.render_toy_angle_table(rows),
        "delight": delight,
        "delight_adam": average("Delight", "adam_cosine"),
        "delight_within": average("Delight", "deviation_within"),
        "maxrl": maxrl,
        "hard": average(HARD, "raw_cosine"),
        "entropy_angle": math.degrees(math.acos(average(ENTROPY, "raw_cosine"))),
    }


def count_further_operators(degrees: float = 20) -> int:
    """Return how many of the twenty operators on the leaderboard turn the gradient by more than some degrees."""
    angles = [float(row["angle"]) for row in read_csv_rows(SHIPPED_CARDS) if row["organism"] == "aligned"]
    require_claim(len(angles) == 20, "the leaderboard shows twenty operators on the embedded policy")
    return sum(angle > degrees for angle in angles)


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the angles between gradients."""
    angles = list_mean_angles()
    others = [angle for stack, each in angles.items() if stack != HARD for angle in each]
    preconditioned = {stack: float(np.mean(each)) for stack, each in list_mean_angles("preconditioned").items()}
    published = 0.954
    return {
        "toy": collect_toy_numbers(),
        "table": tabulate_gradients.render_policy_angle_table(read_results("gradients")),
        "angles": others,
        "prompt_angles": list_prompt_angles(),
        "further": count_further_operators(),
        "preconditioned": [angle for stack, angle in preconditioned.items() if stack != HARD],
        "entropy_angles": angles[ENTROPY],
        "gtpo_angles": angles["GTPO 0.1"],
        "maxrl_angles": angles["MaxRL"],
        "maxrl_largest": max(list_largest_angles("MaxRL")),
        "gtpo_length": float(np.mean(list_length_ratios("GTPO 0.1"))),
        "published_angle": math.degrees(math.acos(published)),
        "published_across": math.sqrt(1 - published**2),
    }
