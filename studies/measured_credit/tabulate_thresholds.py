"""Tabulate after how many steps the conditions of a study reach levels of held-out pass@1.

python -m studies.measured_credit.tabulate_thresholds studies/measured_credit/results/headline_300

The folder holds the CSV files that ``rlcredit report`` wrote. A level is reached when pass@1 is first seen at or above
it, between two evaluations on a straight line. Ratios are to the baseline of the first comparison; their intervals are
of 95 %, over seeds, for these questions, and not corrected for the number of levels.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rlcredit.cards.training_outcome import PRIMARY_METRIC
from rlcredit.pages.tables import Table
from rlcredit.statistics.run_aggregates import steps_to_threshold
from studies import csv_rows
from studies.measured_credit.ratio_of_means import ratio_of_means

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)

Curves = dict[str, dict[int, dict[int, float]]]
"""Held-out pass@1 by condition, seed and step."""


def group_pass_curves(rows: Sequence[dict[str, str]]) -> Curves:
    """Return the curve of every run."""
    found: Curves = {}
    for row in rows:
        seeds = found.setdefault(row["condition"], {})
        seeds.setdefault(int(row["seed"]), {})[int(row["step"])] = float(row[PRIMARY_METRIC])
    return found


def format_steps_to_level(steps: np.ndarray) -> str:
    """Write the mean number of steps, or how many runs get there if not all do."""
    there = int(np.isfinite(steps).sum())
    return f"{steps.mean():.0f}" if there == len(steps) else f"{there} of {len(steps)} runs"


def format_step_ratio(steps: np.ndarray, base: np.ndarray) -> str:
    """Write the ratio of the mean numbers of steps with Fieller's interval, where every run gets there."""
    if not np.isfinite([steps, base]).all():
        return "not known"
    value, (low, high, _) = ratio_of_means(steps, base)
    return f"{value:.2f}" if math.isinf(high) else f"{value:.2f} ({low:.2f} to {high:.2f})"


def make_threshold_table(found: Curves, baseline: str, levels: Sequence[float] = LEVELS) -> Table:
    """Return the table with a row for every level."""
    others = [condition for condition in found if condition != baseline]
    heads = ("pass@1", baseline, *(head for name in others for head in (name, f"{name} / {baseline}")))
    rows = []
    for level in levels:
        taken = {
            name: np.array([steps_to_threshold(runs[seed], level) for seed in sorted(runs)])
            for name, runs in found.items()
        }
        cells = (
            cell
            for name in others
            for cell in (format_steps_to_level(taken[name]), format_step_ratio(taken[name], taken[baseline]))
        )
        rows.append([f"{level:.2f}", format_steps_to_level(taken[baseline]), *cells])
    return Table(heads, rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    baseline = csv_rows.read_csv_rows(args.folder / "comparisons.csv")[0]["baseline"]
    curves = group_pass_curves(csv_rows.read_csv_rows(args.folder / "runs.csv"))
    print(make_threshold_table(curves, baseline).to_markdown())


if __name__ == "__main__":
    main()
