"""Tabulate logged metrics of finished runs, condition by condition, and keep them as CSV.

python -m studies.papers.tabulate_mlflow_metrics mlflow.db credit/OutcomeAnchor/relative_size --out process_term.csv
python -m studies.papers.tabulate_mlflow_metrics process_term.csv
python -m studies.papers.tabulate_mlflow_metrics mlflow.db train/ratio_min train/ratio_max --conditions bf16

"""

import argparse
from collections.abc import Collection, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from rlcredit.pages.tables import Table
from studies import csv_rows
from studies.mlflow_metrics import read_logged_metrics

COLUMNS: tuple[str, ...] = ("metric", "condition", "seed", "steps", "mean", "highest", "lowest")

Row = dict[str, str]


def summarise_logged_metrics(database: Path, metrics: Collection[str]) -> list[Row]:
    """Return mean, highest and lowest value over the steps of every finished run that has a metric."""
    rows = []
    for condition, seed, metric, values in read_logged_metrics(database, metrics.__contains__):
        history = list(values.values())
        numbers = (str(len(history)), *(f"{of(history):.6g}" for of in (np.mean, max, min)))
        rows.append(dict(zip(COLUMNS, (metric, condition, str(seed), *numbers), strict=True)))
    return rows


def render_logged_table(rows: Sequence[Row], digits: int = 2) -> str:
    """Return a Markdown table: mean over seeds and the highest value of any step."""
    lines = []
    for condition, runs in groupby(rows, key=lambda row: row["condition"]):
        of = list(runs)
        mean, highest = np.mean([float(run["mean"]) for run in of]), max(float(run["highest"]) for run in of)
        lines.append((condition, str(len(of)), f"{mean:.{digits}f}", f"{highest:.{digits}f}"))
    return Table(("condition", "seeds", "mean over steps", "highest"), lines).to_markdown()


def render_range_table(rows: Sequence[Row], digits: int = 3) -> str:
    """Return a Markdown table: where several metrics have been in any step of any seed."""
    lines = []
    for (condition, metric), runs in groupby(rows, key=lambda row: (row["condition"], row["metric"])):
        of = list(runs)
        lowest, highest = min(float(run["lowest"]) for run in of), max(float(run["highest"]) for run in of)
        mean = np.mean([float(run["mean"]) for run in of])
        lines.append((condition, metric, *(f"{value:.{digits}f}" for value in (lowest, mean, highest))))
    return Table(("condition", "metric", "lowest", "mean over steps", "highest"), lines).to_markdown()


def main() -> None:
    """Copy metrics out of a database, or print the table of what was copied."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="MLflow database, or CSV file")
    parser.add_argument("metrics", nargs="*", metavar="METRIC")
    parser.add_argument("--conditions", nargs="+", help="all if not given")
    parser.add_argument("--out", type=Path, default=None, help="CSV file")
    args = parser.parse_args()
    rows = summarise_logged_metrics(args.source, args.metrics) if args.metrics else csv_rows.read_csv_rows(args.source)
    rows = [row for row in rows if not args.conditions or row["condition"] in args.conditions]
    if not rows:
        parser.error(f"no finished run of {args.source} has {args.metrics}.")
    rows.sort(key=lambda row: (row["condition"], row["metric"], int(row["seed"])))
    if args.out is not None:
        csv_rows.write_csv_rows(args.out, rows)
    print(render_range_table(rows) if len(args.metrics) > 1 else render_logged_table(rows))


if __name__ == "__main__":
    main()
