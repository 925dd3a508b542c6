"""Tabulate a study family by family, beside what the SEPA paper reports of the same contrast.

python scripts/tabulate_study.py docs/results/tiny_study docs/results/published.csv

The folder holds the CSV files that ``rlcredit report`` wrote.
"""

import argparse
import csv
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tabulate_published import Arm, arms

from rlcredit.report.tables import signed, small
from rlcredit.statistics.t_test import welch_t

PAPER = {
    ("the paper's contrast", "c7_maxrl_hicra"): [("4B", "MaxRL, GTPO, HICRA")],
    ("the paper's contrast", "c8_maxrl_sepa"): [
        ("4B", "MaxRL, SEPA, GTPO"),
        ("4B, semantic detector", "MaxRL, SEPA, GTPO"),
        ("30B", "MaxRL, SEPA, GTPO"),
    ],
    ("masks", "entropy_mask_published"): [("4B, entropy mask", "MaxRL, mask")],
    ("signals", "maxrl_sepa_predictive_variance"): [("4B, signals", "predictive variance")],
}
"""The same contrast in the paper: experiment and arm, by family and condition."""

HEADS = ("condition", "pass@1", "difference", "p", "equivalent, p", "verdict", "area", "the paper")

Row = dict[str, str]


def read(path: Path) -> list[Row]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def between(row: Row, prefix: str = "") -> str:
    """Write an interval of differences in percentage points."""
    return f"({signed(float(row[f'{prefix}low']))} to {signed(float(row[f'{prefix}high']))})"


def published(experiment: str, arm: str, found: dict[tuple[str, str, str], Arm]) -> str:
    """Write a difference of the paper with Welch's interval."""
    (base,) = (each for (name, role, _), each in found.items() if (name, role) == (experiment, "baseline"))
    metric, values = found[experiment, "arm", arm]
    assert metric == base[0], f"{experiment} compares {metric} with {base[0]}"
    welch = welch_t(values, base[1])
    low, high, _ = welch.interval
    return f"{experiment}: {signed(welch.difference)} ({signed(low)} to {signed(high)})"


def row(each: Row, solved: dict[str, Row], paper: dict[tuple[str, str, str], Arm]) -> str:
    """Return a row of Markdown for one comparison."""
    beside = [published(*names, paper) for names in PAPER.get((each["family"], each["condition"]), [])]
    cells = (
        each["condition"],
        f"{float(solved[each['condition']]['pass_at_1']):.3f}",
        f"{signed(float(each['difference']))} {between(each)}",
        small(float(each["p_holm"])),
        small(float(each["p_equivalence_holm"])),
        each["verdict"],
        f"{signed(float(each['area_difference']))} {between(each, 'area_')}",
        "; ".join(beside),
    )
    return f"| {' | '.join(cells)} |"


def lines(folder: Path, paper: dict[tuple[str, str, str], Arm]) -> Iterator[str]:
    """Yield a table of Markdown for every family whose pairs are all there; a campaign without families is one."""
    solved = {each["condition"]: each for each in read(folder / "conditions.csv")}
    for family, rows in groupby(read(folder / "comparisons.csv"), lambda each: each["family"]):
        compared = list(rows)
        baseline = compared[0]["baseline"]
        name = folder.name if family == "all" else family
        if any(each["verdict"].startswith("open") for each in compared):
            yield f"\n{name}: not all pairs are there.\n"
            continue
        yield f"\n**{name}**, against `{baseline}` ({float(solved[baseline]['pass_at_1']):.3f})\n"
        yield f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}"
        yield from (row(each, solved, paper) for each in compared)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("published", type=Path)
    args = parser.parse_args()
    print("\n".join(lines(args.folder, arms(args.published))))


if __name__ == "__main__":
    main()
