import numpy as np
import pytest

from rlcredit.campaign.metric_definition import MetricDefinition
from studies import tabulate_study
from studies.csv_rows import write_csv_rows

FOUND = {
    "pairs": "8",
    "difference": "-0.0077",
    "low": "-0.0132",
    "high": "-0.0022",
    "p_holm": "0.0131",
    "p_equivalence_holm": "0.71",
    "verdict": "worse",
    "area_difference": "0.01",
    "area_low": "0.005",
    "area_high": "0.015",
}


def comparison(family, condition, **more):
    return {"family": family, "baseline": "grpo", "condition": condition, **FOUND, **more}


@pytest.fixture
def tables(tmp_path):
    """Return what is printed for some comparisons with ``grpo``."""

    def printed(*comparisons, paper=None, more=None):
        folder = tmp_path / "study"
        folder.mkdir()
        write_csv_rows(folder / "comparisons.csv", comparisons)
        names = ["grpo", *(each["condition"] for each in comparisons)]
        write_csv_rows(folder / "conditions.csv", [{"condition": name, "pass_at_1": "0.9525"} for name in names])
        return "\n".join(tabulate_study.render_study_tables(folder, paper or {}, more))

    return printed


def test_differences_are_in_percentage_points_and_a_campaign_without_families_has_its_own_name(tables):
    text = tables(comparison("all", "gtpo"))
    assert text.startswith("**study**, against `grpo` (0.953)\n")
    row = "| gtpo | 0.953 | -0.77 (-1.32 to -0.22) | 0.013 | 0.710 | worse | +1.00 (+0.50 to +1.50) |\n"
    assert row in text
    assert "the paper" not in text


def test_further_columns_stand_behind_the_others(tables):
    text = tables(comparison("all", "gtpo"), more={"by area": {("all", "gtpo"): "slower"}})
    assert "| verdict | area | by area |\n" in text
    assert text.rstrip().endswith("| worse | +1.00 (+0.50 to +1.50) | slower |")


def test_a_family_that_lacks_pairs_or_cannot_be_compared_has_no_table(tables):
    empty = dict.fromkeys(FOUND, "")
    text = tables(
        comparison("first", "gtpo"),
        comparison("first", "hicra", **{**empty, "pairs": "3", "verdict": "open: 3 of 8 pairs"}),
        comparison("second", "sepa", **{**empty, "verdict": "not compared: other questions"}),
    )
    assert "first: open: 3 of 8 pairs.\n" in text
    assert "second: not compared: other questions.\n" in text
    assert "|" not in text


def test_the_paper_stands_beside_its_own_contrast_with_its_own_baseline(tables):
    same = MetricDefinition("solve rate", "running mean")
    paper = {
        ("4B, signals", "baseline", "surprisal"): (same, np.array([0.51, 0.50, 0.52])),
        ("4B, signals", "arm", "predictive variance"): (same, np.array([0.50, 0.49, 0.51])),
    }
    text = tables(comparison("signals", "maxrl_sepa_predictive_variance"), paper=paper)
    # Welch: sqrt(2 x 0.01^2 / 3) x t(0.975, 4) = 0.0082 x 2.776
    assert "| 4B, signals, against surprisal: -1.00 (-3.27 to +1.27) |" in text


def test_metrics_of_two_definitions_are_refused(tables):
    paper = {
        ("4B, signals", "baseline", "surprisal"): (
            MetricDefinition("solve rate", "running mean"),
            np.array([0.51, 0.50, 0.52]),
        ),
        ("4B, signals", "arm", "predictive variance"): (
            MetricDefinition("solve rate", "last batch"),
            np.array([0.5, 0.5, 0.5]),
        ),
    }
    with pytest.raises(ValueError, match="surprisal 'running mean'"):
        tables(comparison("signals", "maxrl_sepa_predictive_variance"), paper=paper)
