"""Learning rates chosen on seeds that have no part in the comparison."""

import sys
from pathlib import Path

import csv_rows
import pytest
from docs.studies.headline import choose_rates

from rlcredit.campaign.declaration import read_declaration

CAMPAIGN = Path("configs/campaigns/headline_rates.yaml")
BEST = {"flat": "2", "measured": "4", "gtpo": "05"}


@pytest.fixture
def results(tmp_path):
    """Return a folder in which each condition ends best with one factor, and others with all alike."""
    rows = []
    for condition in read_declaration(CAMPAIGN).conditions:
        name, _, factor = condition.rpartition("_x")
        for seed, offset in ((100, 0.0), (101, -0.1)):
            ended = 0.5 + offset + 0.3 * (BEST.get(name) == factor)
            rows += [
                {"condition": condition, "seed": seed, "step": step, "val/pass_at_1": value}
                for step, value in ((0, 0.9), (100, ended))
            ]
    csv_rows.write_csv_rows(tmp_path / "runs.csv", rows)
    return tmp_path


def test_the_best_rate_of_every_condition_is_declared_with_seeds_of_its_own(results, tmp_path, monkeypatch, capsys):
    out = tmp_path / "headline.yaml"
    monkeypatch.setattr(sys, "argv", f"choose_rates.py {CAMPAIGN} {results} --out {out}".split())
    choose_rates.main()
    plan, tuned = read_declaration(out), read_declaration(CAMPAIGN)
    assert plan.name == "headline_best"
    assert plan.conditions["flat"] == tuned.conditions["flat_x2"]
    assert plan.conditions["measured"] == tuned.conditions["measured_x4"]
    assert plan.conditions["gtpo"] == tuned.conditions["gtpo_x05"]
    assert plan.conditions["measured_decayed"] == (*tuned.conditions["measured_x4"], choose_rates.DECAY)
    assert len(plan.seeds) == 8
    assert not {*plan.seeds} & {*tuned.seeds}
    assert {family.baseline for family in plan.comparison_families.values()} == {"flat", "flat_decayed"}
    text = capsys.readouterr().out
    assert "| condition | x 0.5 | x 1 | x 2 | x 4 |" in text
    assert "| measured | 0.450 | 0.450 | 0.450 | **0.750** |" in text
    assert "- measured: x 4 is the highest of its grid; a higher one may be better.\n" in text
    assert "- gtpo: x 0.5 is the lowest of its grid; a lower one may be better.\n" in text
    assert "- hicra: x 1 and x 2 and x 4 are tied with x 0.5.\n" in text
    assert "- flat:" not in text


def test_of_equal_rates_the_lowest_is_chosen(results):
    conditions, ended = (
        choose_rates.group_conditions_by_factor(read_declaration(CAMPAIGN)),
        choose_rates.read_final_means(results, "val/pass_at_1", 100),
    )
    assert choose_rates.choose_best_factor(conditions["hicra"], "hicra", ended) == "05"


def test_seeds_that_had_a_part_in_the_choice_are_refused(results):
    tuned = read_declaration(CAMPAIGN)
    conditions, ended = (
        choose_rates.group_conditions_by_factor(tuned),
        choose_rates.read_final_means(results, "val/pass_at_1", 100),
    )
    with pytest.raises(ValueError, match=r"\[101, 102\] had a part in the choice"):
        choose_rates.declare_tuned_comparison(tuned, conditions, ended, range(101, 109))


def test_a_condition_without_a_factor_is_refused():
    with pytest.raises(ValueError, match="called NAME_xFACTOR"):
        choose_rates.group_conditions_by_factor(read_declaration(Path("configs/campaigns/headline_300.yaml")))
