"""Compute the SEPA paper's tables from its per-seed values: tests and intervals. Three seeds reach no verdict.

python -m studies.published.tabulate_published studies/published/results/published.csv

"""

import argparse
from itertools import groupby
from pathlib import Path

import numpy as np

from rlcredit.campaign.metric_definition import MetricDefinition, list_metric_differences
from rlcredit.pages.tables import Table
from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.sign_flip import sign_flip_p
from rlcredit.statistics.t_test import paired_t_test, welch_t_test
from studies import csv_rows

MARGIN = 0.01

MeasuredValues = tuple[MetricDefinition, np.ndarray]


def read_published_runs(path: Path) -> dict[tuple[str, str, str], MeasuredValues]:
    """Return metric and values, as proportions by seed, by experiment, role and condition."""
    by_key = {}
    for key, group in groupby(
        csv_rows.read_csv_rows(path), lambda row: (row["experiment"], row["role"], row["condition"])
    ):
        runs = list(group)
        values = np.array([float(row["percent"]) / 100 for row in sorted(runs, key=lambda row: int(row["seed"]))])
        by_key[key] = MetricDefinition("solve rate", runs[0]["metric"]), values
    return by_key


HEADS = (
    "experiment",
    "condition",
    "difference, Welch interval",
    "Welch t (df), p",
    "paired p",
    "sign flip",
    "Welch, equivalent within 1 pp, p",
)


def render_published_table(published: dict[tuple[str, str, str], MeasuredValues]) -> str:
    """Return a table in Markdown with a row for every condition against its baseline."""
    rows = []
    baselines = {experiment: values for (experiment, role, _), values in published.items() if role == "baseline"}
    for (experiment, role, condition), (metric, values) in published.items():
        if role == "baseline":
            continue
        base_metric, base = baselines[experiment]
        if reasons := list_metric_differences(metric, base_metric, (condition, "baseline")):
            rows.append((experiment, condition, f"not compared: {'; '.join(reasons)}", "", "", "", ""))
            continue
        welch, paired = welch_t_test(values, base), paired_t_test(values - base)
        low, high, _ = (100 * bound for bound in welch.interval)
        cells = (
            f"{100 * welch.difference:+.2f} ({low:+.2f} to {high:+.2f})",
            f"{welch.statistic:.2f} ({welch.df:.2f}), {welch.p:.2f}",
            f"{paired.p:.2f}",
            f"{sign_flip_p(values - base):.2f}",
            f"{equivalence_test(welch, MARGIN).p:.2f}",
        )
        rows.append((experiment, condition, *cells))
    return Table(HEADS, rows).to_markdown()


def main() -> None:
    """Print the table, and which experiments share a metric."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    published = read_published_runs(parser.parse_args().path)
    print(render_published_table(published))
    (first, first_values), (last, last_values) = (
        next((key, values) for key, values in published.items() if key[0] == name) for name in ("4B", "30B")
    )
    reasons = list_metric_differences(first_values[0], last_values[0], (first[0], last[0]))
    print(f"\n{first[0]} and {last[0]} are not compared: {'; '.join(reasons)}")


if __name__ == "__main__":
    main()
