"""Tabulate how far credit operators turn gradients, as ``replicate_gradient_table.py`` has measured it.

cd studies/credit_patterns/results
python -m studies.credit_patterns.tabulate_gradients gradients_toy.csv gradients.csv

"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rlcredit.pages.tables import Table
from studies import csv_rows

Row = dict[str, str]


def render_toy_angle_table(rows: Sequence[Row]) -> str:
    """Return the table of the toy: means over batches, and over the last half of them."""
    columns = ("raw cosine", "angle", "Adam, all batches", "last half", "deviation of credit within completions")
    lines = []
    for stack in dict.fromkeys(row["stack"] for row in rows):
        raw, adam, within = (
            np.array([float(row[name]) for row in rows if row["stack"] == stack])
            for name in ("raw_cosine", "adam_cosine", "deviation_within")
        )
        means = [f"{values.mean():.4f}" for values in (raw, adam, adam[len(adam) // 2 :], within)]
        lines.append([stack, means[0], f"{mean_angle_degrees(raw):.1f}°", *means[1:]])
    return Table(["stack against GRPO", *columns], lines).to_markdown()


def render_policy_angle_table(rows: Sequence[Row]) -> str:
    """Return the table of the policy in training: means over steps, angles with their ranges, the rest over seeds."""
    seeds = sorted({row["seed"] for row in rows})
    lines = []

    def values(seed: str, quantity: str) -> np.ndarray:
        return np.array([float(row["value"]) for row in rows if (row["seed"], row["quantity"]) == (seed, quantity)])

    versus, kind = "this_stack_vs_", "_raw_degrees"
    quantities = dict.fromkeys(row["quantity"] for row in rows)
    for key in (name.removesuffix(kind) for name in quantities if name.startswith(versus) and name.endswith(kind)):
        raw = [values(seed, f"{key}{kind}") for seed in seeds]
        length = np.mean([1 / values(seed, f"{key}_raw_norm_ratio").mean() for seed in seeds])
        adam = np.mean([values(seed, f"{key}_preconditioned_degrees").mean() for seed in seeds])
        cells = [f"{each.mean():.1f}° ({each.min():.1f} to {each.max():.1f})" for each in raw]
        lines.append([key.removeprefix(versus), *cells, f"x {length:.1f}", f"{adam:.1f}°"])
    for size in ("half", "full"):
        cells = [f"*{mean_angle_degrees(values(seed, f'{size}_cosine')):.1f}°*" for seed in seeds]
        lines.append([f"*other prompts, {'half a' if size == 'half' else 'whole'} batch*", *cells, "", ""])
    columns = (f"raw angle, seed {seed}" for seed in seeds)
    return Table(["stack against GRPO", *columns, "length", "preconditioned"], lines).to_markdown()


def mean_angle_degrees(cosines: np.ndarray) -> float:
    """Return the angle whose cosine is the mean."""
    return math.degrees(math.acos(min(1.0, cosines.mean())))


def main() -> None:
    """Print the table of every file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="CSV files, of the toy or of the policy")
    for file in parser.parse_args().files:
        rows = csv_rows.read_csv_rows(file)
        print(render_toy_angle_table(rows) if "stack" in rows[0] else render_policy_angle_table(rows), end="\n\n")


if __name__ == "__main__":
    main()
