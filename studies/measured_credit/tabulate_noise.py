"""Tabulate how noisy the gradients of credit operators are, as ``measure_noise.py`` has measured it.

python -m studies.measured_credit.tabulate_noise studies/measured_credit/results/noise.csv

"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rlcredit.pages.number_formats import format_with_interval
from rlcredit.pages.tables import Table
from studies import csv_rows

Row = dict[str, str]


def render_noise_cell(rows: Sequence[Row], **keys: str) -> str:
    """Return an estimate and its interval; nothing where it was not measured."""
    for row in rows:
        if keys.items() <= row.items():
            estimate, low, high = (float(row[name]) for name in ("estimate", "low", "high"))
            return format_with_interval(estimate, low, high, ".2f")
    return ""


def render_noise_table(rows: Sequence[Row], completions: str = "8") -> str:
    """Return the table of all stacks and lengths, or tasks, with one number of completions per prompt."""
    by = "terms" if "terms" in rows[0] else "task"
    places = list(dict.fromkeys(row[by] for row in rows))
    titles = [f"{each.replace('-', ' to ')} terms" if by == "terms" else each for each in places]
    heads = [f"{title}: {name}" for title in titles for name in ("agreement", "direction")]
    lines = []
    for stack in dict.fromkeys(row["stack"] for row in rows):
        cells = [
            render_noise_cell(rows, **{by: each}, stack=stack, quantity=quantity, completions=completions)
            for each in places
            for quantity in ("agreement", "direction")
        ]
        lines.append([stack, *cells])
    return Table(["stack", *heads], lines).to_markdown()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--completions", default="8", help="per prompt")
    args = parser.parse_args()
    print(render_noise_table(csv_rows.read_csv_rows(args.file), args.completions))


if __name__ == "__main__":
    main()
