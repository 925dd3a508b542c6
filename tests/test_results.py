"""What the documentation says that was measured follows from the files beside it."""

import csv
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import tabulate_published
import tabulate_study
from scipy import stats
from statsmodels.stats.multitest import multipletests

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "results"
STUDIES = sorted(path.parent for path in RESULTS.glob("*/comparisons.csv"))
MARGIN = {"tiny_study": 0.01}
HEADROOM = 0.02
STEPS, SEEDS = 100, 8


def read(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def values(folder):
    """Return held-out pass@1 by condition and step, in the order of the seeds."""
    found = {}
    rows = sorted(read(folder / "runs.csv"), key=lambda row: (row["condition"], int(row["step"]), int(row["seed"])))
    for key, group in groupby(rows, key=lambda row: (row["condition"], int(row["step"]))):
        found[key] = np.array([float(row["val/pass_at_1"]) for row in group])
    return found


def number(text):
    return float(text) if text else None


def tost(differences, margin):
    low = stats.ttest_1samp(differences + margin, 0, alternative="greater").pvalue
    return max(low, stats.ttest_1samp(differences - margin, 0, alternative="less").pvalue)


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_comparisons_follow_from_the_values_of_the_runs(folder):
    solved = values(folder)
    margin = MARGIN.get(folder.name, HEADROOM)
    for _, group in groupby(read(folder / "comparisons.csv"), key=lambda row: row["family"]):
        rows = [row for row in group if int(row["pairs"]) == SEEDS]
        differences = [solved[row["condition"], STEPS] - solved[row["baseline"], STEPS] for row in rows]
        for row, each in zip(rows, differences, strict=True):
            test = stats.ttest_1samp(each, 0)
            assert float(row["difference"]) == pytest.approx(each.mean(), abs=1e-12)
            assert float(row["t"]) == pytest.approx(test.statistic, rel=1e-6)
            interval = test.confidence_interval(0.95)
            assert (float(row["low"]), float(row["high"])) == pytest.approx(tuple(interval), rel=1e-6)
        tested = [(row, each) for row, each in zip(rows, differences, strict=True) if number(row["p_holm"]) is not None]
        if tested:
            ps = [stats.ttest_1samp(each, 0).pvalue for _, each in tested]
            equal = [tost(each, margin) for _, each in tested]
            for (row, _), p, same in zip(
                tested, multipletests(ps, method="holm")[1], multipletests(equal, method="holm")[1], strict=True
            ):
                assert float(row["p_holm"]) == pytest.approx(p, rel=1e-6)
                assert float(row["p_equivalence_holm"]) == pytest.approx(same, rel=1e-6)


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_the_page_shows_the_tables_that_the_script_prints(folder):
    paper = tabulate_published.arms(RESULTS / "published.csv")
    page = (DOCS / "replication.md").read_text(encoding="utf-8")
    rows = [line for text in tabulate_study.lines(folder, paper) for line in text.splitlines() if line]
    assert len(rows) > 3
    assert [line for line in rows if line not in page] == []
