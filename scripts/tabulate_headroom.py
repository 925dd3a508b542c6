"""Tabulate what share of a gap each condition closes: the gap is between a campaign's baseline and its one condition.

python scripts/tabulate_headroom.py docs/results/headroom_optimal_6_8 docs/results/headroom_operators_6_8

The folders hold the CSV files that ``rlcredit report`` wrote, the gap's first. All have the same baseline, run by run.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tabulate_study import difference, read

from rlcredit.statistics.learning_curve_area import learning_curve_area
from rlcredit.statistics.ratio_of_means import ratio_of_means
from rlcredit.statistics.t_test import paired_t

HEADS = ("condition", "difference after the last step", "share of the gap", "difference of areas", "share of the gap")

Leads = tuple[np.ndarray, np.ndarray]
"""Of a condition over the baseline, one value a seed: after the last step, and in area."""


def differences(folder: Path) -> tuple[np.ndarray, dict[str, Leads]]:
    """Return the baseline's curves, one row a seed and one column an evaluation, and the leads of every condition."""
    rows, baseline = read(folder / "runs.csv"), read(folder / "comparisons.csv")[0]["baseline"]
    steps, seeds = (sorted({int(row[name]) for row in rows}) for name in ("step", "seed"))
    found = {row["condition"]: np.full((len(seeds), len(steps)), np.nan) for row in rows}
    for row in rows:
        found[row["condition"]][seeds.index(int(row["seed"])), steps.index(int(row["step"]))] = row["val/pass_at_1"]
    base = found.pop(baseline)
    curves = {name: each - base for name, each in found.items()}
    return base, {name: (each[:, -1], learning_curve_area(steps, each)) for name, each in curves.items()}


def share(leads: np.ndarray, gap: np.ndarray) -> str:
    """Write a share with Fieller's interval, in percent."""
    value, (low, high, _) = ratio_of_means(leads, gap)
    return f"{100 * value:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def cells(leads: Leads, gaps: Leads) -> Iterator[str]:
    """Yield a difference with its interval and its share of the gap, after the last step and in area."""
    for lead, gap in zip(leads, gaps, strict=True):
        test = paired_t(lead)
        yield difference(test.difference, test.interval.low, test.interval.high)
        yield share(lead, gap)


def lines(folder: Path, others: Sequence[Path]) -> Iterator[str]:
    """Yield the table in Markdown, the whole gap in its first row.

    Raises:
        ValueError: a baseline has other runs than the gap's, so that its differences are no part of it.

    """
    baseline, whole = differences(folder)
    ((_, gaps),) = whole.items()
    yield f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}"
    for each in (folder, *others):
        base, found = differences(each)
        if not np.array_equal(base, baseline):
            raise ValueError(f"The baseline of {each} has other runs than that of {folder}. Run both alike.")
        for name, leads in found.items():
            yield f"| {name} | {' | '.join(cells(leads, gaps))} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gap", type=Path)
    parser.add_argument("others", type=Path, nargs="+")
    args = parser.parse_args()
    print("\n".join(lines(args.gap, args.others)))


if __name__ == "__main__":
    main()
