"""Tabulate the share of the gap between the baseline and one condition that the other conditions close.

FOLDERS="studies/measured_credit/results/headroom_optimal_6_8 studies/measured_credit/results/headroom_operators_6_8"
python -m studies.measured_credit.tabulate_headroom monte_carlo_optimal $FOLDERS

The folders hold the CSV files that ``rlcredit report`` wrote; the condition is one of the first. Each campaign has one
baseline, and all have the same, run by run. Intervals are of 95 %, for these questions, and not corrected.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rlcredit.pages.tables import Table
from rlcredit.statistics.run_aggregates import learning_curve_area
from rlcredit.statistics.t_test import paired_t_test
from studies.csv_rows import read_csv_rows
from studies.lead_tables import format_lead
from studies.measured_credit.ratio_of_means import ratio_of_means
from studies.numbers import Estimate

HEADS = ("condition", "difference after the last step", "share of the gap", "difference of areas", "share of that gap")

Leads = tuple[np.ndarray, np.ndarray]
"""Leads of a condition over the baseline, one value per seed: after the last step, and in area."""


def read_condition_leads(folder: Path) -> tuple[np.ndarray, dict[str, Leads]]:
    """Return the baseline's curves, one row a seed and one column an evaluation, and the leads of every condition."""
    rows, baseline = read_csv_rows(folder / "runs.csv"), read_csv_rows(folder / "comparisons.csv")[0]["baseline"]
    steps, seeds = (sorted({int(row[name]) for row in rows}) for name in ("step", "seed"))
    curves = {row["condition"]: np.full((len(seeds), len(steps)), np.nan) for row in rows}
    for row in rows:
        curves[row["condition"]][seeds.index(int(row["seed"])), steps.index(int(row["step"]))] = row["val/pass_at_1"]
    base = curves.pop(baseline)
    curve_leads = {name: curve - base for name, curve in curves.items()}
    return base, {name: (curve[:, -1], learning_curve_area(steps, curve)) for name, curve in curve_leads.items()}


def format_gap_share(lead: np.ndarray, gap: np.ndarray) -> str:
    """Write a share with Fieller's interval, in percent, unless the gap may be zero."""
    value, (low, high, _) = ratio_of_means(lead, gap)
    if math.isinf(high):
        return "not known"
    value, low, high = (round(100 * bound) for bound in (value, low, high))
    return f"{value} % ({low} to {high})"


def render_lead_cells(lead: Leads, gap: Leads) -> Iterator[str]:
    """Yield a difference with its interval and its share of the gap, after the last step and in area."""
    for differences, gap_differences in zip(lead, gap, strict=True):
        test = paired_t_test(differences)
        yield format_lead(Estimate(*(100 * end for end in (test.difference, *test.interval[:2]))), 2)
        yield format_gap_share(differences, gap_differences)


def render_headroom_table(condition: str, folders: Sequence[Path]) -> str:
    """Return the table in Markdown.

    Raises:
        ValueError: a baseline has other runs than that of the gap, so that the differences cannot be compared.

    """
    campaigns = [read_condition_leads(folder) for folder in folders]
    baseline, gaps = campaigns[0]
    rows = []
    for folder, (base, conditions) in zip(folders, campaigns, strict=True):
        if not np.array_equal(base, baseline, equal_nan=True):
            raise ValueError(f"The baseline of {folder} has other runs than that of {folders[0]}. Run both alike.")
        rows += [[name, *render_lead_cells(lead, gaps[condition])] for name, lead in conditions.items()]
    return Table(HEADS, rows).to_markdown()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("condition")
    parser.add_argument("folders", type=Path, nargs="+")
    args = parser.parse_args()
    print(render_headroom_table(args.condition, args.folders))


if __name__ == "__main__":
    main()
