"""Areas of a campaign, concluded beside its ends."""

import numpy as np
import pytest
from csv_rows import write_csv_rows
from docs.numbers import RESULTS, read_results
from docs.studies.replication import tabulate_areas
from scipy import stats
from statsmodels.stats.multitest import multipletests

CURVES = {
    "base": lambda seed: (0.4, 0.6, 0.8 + 0.01 * seed),
    "quick": lambda seed: (0.4, 0.7 + 0.01 * (seed % 3), 0.8 + 0.01 * seed),
    "same": lambda seed: (0.4, 0.6 + 0.03 * (-1) ** seed, 0.8 + 0.01 * seed),
    "fallen": lambda seed: (0.4, 0.3 if seed == 5 else 0.59, 0.1 if seed == 5 else 0.79 + 0.01 * seed),
}


@pytest.fixture
def study(tmp_path):
    """Eight runs of four conditions, evaluated after 0, 10 and 40 steps; one run collapses."""
    write_csv_rows(
        tmp_path / "runs.csv",
        [
            {"condition": name, "seed": seed, "step": step, "val/pass_at_1": value}
            for name, curve in CURVES.items()
            for seed in reversed(range(8))
            for step, value in zip((0, 10, 40), curve(seed), strict=True)
        ],
    )
    write_csv_rows(
        tmp_path / "comparisons.csv",
        [
            {
                **{"family": "all", "baseline": "base", "condition": name, "verdict": "undecided: more"},
                **{"collapsed": int(name == "fallen"), "baseline_collapsed": 0},
            }
            for name in ("quick", "same", "fallen")
        ],
    )
    return tmp_path


def test_areas_are_of_whole_curves_in_the_order_of_seeds(study):
    areas = tabulate_areas.read_areas(study / "runs.csv")
    # trapezoid over 0, 10, 40: (0.4 + 0.6) / 2 x 10 and (0.6 + 0.8 + 0.01 seed) / 2 x 30, over 40
    assert areas["base"] == pytest.approx([(5 + 21 + 0.15 * seed) / 40 for seed in range(8)])


def test_areas_are_tested_and_corrected_as_ends_are(study):
    areas, found = tabulate_areas.read_areas(study / "runs.csv"), tabulate_areas.conclude_areas(study)
    raw = [stats.ttest_rel(areas[name], areas["base"]).pvalue for name in ("quick", "same")]
    raw.append(2 / 2**8)  # all eight pairs to one side, by exact sign flip, since a run collapsed
    assert [each.p for each in found.values()] == pytest.approx(multipletests(raw, method="holm")[1], rel=1e-6)
    assert [each.words for each in found.values()] == ["faster", "undecided", "slower"]
    assert found["all", "quick"].difference == pytest.approx(np.mean(areas["quick"] - areas["base"]))


def test_the_areas_of_the_replication_are_those_of_its_report():
    found = tabulate_areas.conclude_areas(RESULTS / "tiny_study")
    for row in read_results("tiny_study/comparisons"):
        own = found[row["family"], row["condition"]]
        assert own.difference == pytest.approx(float(row["area_difference"]), abs=1e-9)
