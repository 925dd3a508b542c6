import pytest
from csv_rows import write_csv_rows
from docs.studies.operators_and_the_gap import tabulate_headroom

STEPS = (0, 20, 100)
BASELINE = [(0.2, 0.4, 0.5), (0.2, 0.3, 0.4), (0.2, 0.4, 0.6)]


@pytest.fixture
def campaign(tmp_path):
    """Return the folder of a campaign whose conditions lead by so much from the second evaluation on, seed by seed."""

    def made(name, baseline=BASELINE, **leads):
        folder = tmp_path / name
        folder.mkdir()
        write_csv_rows(folder / "comparisons.csv", [{"baseline": "grpo", "condition": each} for each in leads])
        runs = {"grpo": baseline} | {
            each: [(row[0], row[1] + more, row[2] + more) for row, more in zip(baseline, lead, strict=True)]
            for each, lead in leads.items()
        }
        rows = [
            {"condition": each, "seed": seed, "step": step, "val/pass_at_1": value}
            for each, found in runs.items()
            for seed, row in enumerate(found)
            for step, value in zip(STEPS, row, strict=True)
        ]
        write_csv_rows(folder / "runs.csv", rows[::-1])
        return folder

    return made


def test_the_share_of_a_lead_is_a_ratio_of_means(campaign):
    gap, other = campaign("gap", ceiling=(0.1, 0.1, 0.1)), campaign("other", half=(0.04, 0.05, 0.06))
    *_, whole, half = tabulate_headroom.render_headroom_table("ceiling", [gap, other]).splitlines()
    ceiling = "+10.00 (all alike) | 100 % (100 to 100) | +9.00 (all alike) | 100 % (100 to 100)"
    assert whole == f"| ceiling | {ceiling} |"
    # 0.01 / sqrt(3) x t(0.975, 2) = 0.0248; in area it is reached between steps 0 and 20 only by half: x 0.9
    shares = "+5.00 (+2.52 to +7.48) | 50 % (25 to 75) | +4.50 (+2.26 to +6.74) | 50 % (25 to 75)"
    assert half == f"| half | {shares} |"


def test_the_gap_is_one_of_several_conditions_and_a_lead_of_nothing_is_no_share(campaign):
    folder = campaign("gap", ceiling=(0.1, 0.1, 0.1), none=(-1e-5, 0.0, 0.0))
    table = tabulate_headroom.render_headroom_table("ceiling", [folder])
    (none,) = [row for row in table.splitlines() if row.startswith("| none")]
    assert "| 0 % (0 to 0) |" in none


def test_of_a_gap_that_may_be_none_no_share_is_known(campaign):
    folder = campaign("gap", ceiling=(0.1, -0.1, 0.05))
    *_, ceiling = tabulate_headroom.render_headroom_table("ceiling", [folder]).splitlines()
    assert ceiling.count("| not known |") == 2


def test_a_missing_run_is_said_to_be_missing(campaign):
    gap = campaign("gap", baseline=[*BASELINE[:2], (0.2, 0.4, float("nan"))], ceiling=(0.1, 0.1, 0.1))
    with pytest.raises(ValueError, match="Repeat that run"):
        tabulate_headroom.render_headroom_table("ceiling", [gap])


def test_of_another_baseline_nothing_is_a_share(campaign):
    gap = campaign("gap", ceiling=(0.1, 0.1, 0.1))
    other = campaign("other", baseline=[*BASELINE[:2], (0.2, 0.4, 0.59)], half=(0.05, 0.05, 0.05))
    with pytest.raises(ValueError, match="other runs than that of"):
        tabulate_headroom.render_headroom_table("ceiling", [gap, other])
