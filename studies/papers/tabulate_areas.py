"""Tabulate what the areas under the curves of a campaign say, beside the verdicts at the end of the runs.

python -m docs.studies.replication.tabulate_areas docs/results/tiny_study

The folder holds the CSV files that ``rlcredit report`` wrote. Differences of areas are paired by seed and tested as
ends are: by Student's t, or by the exact sign flip where a run collapsed, corrected by Holm over all comparisons.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import csv_rows
import numpy as np
from docs.numbers import measure_run_areas

from rlcredit.pages.number_formats import format_p_value, format_signed_points
from rlcredit.pages.tables import Table
from rlcredit.statistics.adjusted_p import holm_adjusted_p
from rlcredit.statistics.sign_flip import sign_flip_p
from rlcredit.statistics.t_test import paired_t_test

Key = tuple[str, str]
"""Family and condition of a comparison."""


@dataclass(frozen=True)
class AreaConclusion:
    """What the area of a condition shows against its baseline's.

    Args:
        difference: Mean difference of pass@1 over the run, in proportions.
        p: P-value of no difference, corrected over all comparisons.
        end: Verdict at the end of the runs.

    """

    difference: float
    p: float
    end: str

    @property
    def words(self) -> str:
        """Conclusion in a word: faster, slower or undecided."""
        if self.p > 0.05:
            return "undecided"
        return "faster" if self.difference > 0 else "slower"


def read_areas(path: Path) -> dict[str, np.ndarray]:
    """Return the area under pass@1 of every run of a file, by condition, in the order of the seeds."""
    areas: dict[str, list[float]] = {}
    for (condition, _), area in sorted(measure_run_areas(csv_rows.read_csv_rows(path)).items()):
        areas.setdefault(condition, []).append(area)
    return {condition: np.array(each) for condition, each in areas.items()}


def conclude_areas(folder: Path) -> dict[Key, AreaConclusion]:
    """Return what areas show in every comparison of a campaign."""
    areas = read_areas(folder / "runs.csv")
    comparisons = csv_rows.read_csv_rows(folder / "comparisons.csv")
    differences = [areas[row["condition"]] - areas[row["baseline"]] for row in comparisons]
    fallen = [int(row["collapsed"]) + int(row["baseline_collapsed"]) > 0 for row in comparisons]
    ps = holm_adjusted_p(
        [sign_flip_p(each) if falls else paired_t_test(each).p for each, falls in zip(differences, fallen, strict=True)]
    )
    return {
        (row["family"], row["condition"]): AreaConclusion(float(each.mean()), float(p), row["verdict"])
        for row, each, p in zip(comparisons, differences, ps, strict=True)
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    rows = [
        [*key, format_signed_points(each.difference), format_p_value(each.p), each.words, each.end]
        for key, each in conclude_areas(parser.parse_args().folder).items()
    ]
    print(Table(["family", "condition", "area", "p", "by area", "at the end"], rows).to_markdown())


if __name__ == "__main__":
    main()
