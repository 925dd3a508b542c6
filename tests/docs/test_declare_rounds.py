"""The rounds in which rates are chosen at equal tokens, on results made up for it."""

import pytest
import yaml

from docs.studies.equal_tokens import declare_rounds
from docs.studies.equal_tokens.declare_rounds import (
    choose_rates,
    declare_campaign,
    find_stopped_kinds,
    read_areas,
    render_area_table,
    select_best,
    select_repeated,
)
from rlcredit.campaign.declaration import read_declaration

FIRST = {
    "flat": {0.5: {0: 0.60}, 1.0: {0: 0.70}, 2.0: {0: 0.70}},
    "good": {0.5: {0: 0.66}, 1.0: {0: 0.65}, 2.0: {0: 0.50}},
    "bad": {0.5: {0: 0.649}, 1.0: {0: 0.5}, 2.0: {0: 0.4}},
    "rising": {0.5: {0: 0.1}, 1.0: {0: 0.2}, 2.0: {0: 0.3}},
}
BOTH = {
    "flat": {0.5: {0: 0.60}, 1.0: {0: 0.70, 1: 0.71}, 2.0: {0: 0.70, 1: 0.75}},
    "good": {0.5: {0: 0.66, 1: 0.60}, 1.0: {0: 0.65, 1: 0.70}, 2.0: {0: 0.99}},
    "bad": {0.5: {0: 0.649}, 1.0: {0: 0.5}, 2.0: {0: 0.4}},
    "rising": {0.5: {0: 0.1}, 1.0: {0: 0.2}, 2.0: {0: 0.9, 1: 0.5}, 4.0: {1: 0.71}},
}


@pytest.fixture
def tuned(tmp_path):
    grid = "\n".join(
        f"  {name}_x{factor}: [configs/conditions/sepa_paper/c1_grpo.yaml, configs/rates/x{factor}.yaml]"
        for name in FIRST
        for factor in ("05", "1", "2")
    )
    path = tmp_path / "grid.yaml"
    path.write_text(
        f"name: grid\nconfigs: [configs/tiny.yaml]\nconditions:\n{grid}\nbaseline: flat_x1\nseeds: [0]\n"
        "budget: {decoded_tokens: 1000, evaluations: 2}\nprimary: val/pass_at_1\nsummary: area\neffect: 0.02\n"
        "exploratory: true\nheld_out: {questions: by_seed, draws: by_seed}\n"
        "settings: {checkpoint.every_n_train_steps: 9}\n"
    )
    return read_declaration(path)


def test_areas_are_mean_heights_over_the_budget_by_kind_factor_and_seed(monkeypatch):
    rows = [
        {"condition": f"flat_x{factor}", "seed": seed, "budget": mark, "val/pass_at_1": height}
        for factor, seed, heights in (("05", "7", (0.2, 0.4, 0.4)), ("2", "8", (0.0, 0.0, 1.0)))
        for mark, height in zip(("0", "500", "1000"), heights, strict=True)
    ]
    monkeypatch.setattr(declare_rounds, "read_results", lambda name: rows if name == "grid/runs" else [])
    areas = read_areas(["grid", "other"])
    assert areas["flat"][0.5] == {7: pytest.approx(0.35)}
    assert areas["flat"][2.0] == {8: pytest.approx(0.25)}


def test_a_kind_more_than_five_points_behind_is_stopped_but_not_at_the_end_of_the_grid():
    assert find_stopped_kinds(FIRST, spare_highest=True) == {"bad": pytest.approx(0.051)}
    assert {*find_stopped_kinds(FIRST, spare_highest=False)} == {"bad", "rising"}


def test_two_rates_of_a_kind_go_on_of_equal_ones_the_lower_and_one_beyond_the_end_of_the_grid(tuned):
    selected = select_repeated(tuned, FIRST)
    assert [*selected] == ["flat_x1", "flat_x2", "good_x05", "good_x1", "rising_x2", "rising_x4"]
    assert selected["rising_x4"][-1] == "configs/rates/x4.yaml"
    assert choose_rates(FIRST)["flat"].best == 1.0


def test_a_rate_is_chosen_among_those_of_the_last_round_on_the_seeds_that_all_of_them_have(tuned, monkeypatch):
    best = {name: choice.best for name, choice in choose_rates(BOTH).items()}
    assert best == {"flat": 2.0, "good": 1.0, "bad": 0.5, "rising": 4.0}
    monkeypatch.setattr(declare_rounds, "read_areas", lambda rounds: BOTH if len(rounds) == 2 else FIRST)
    stopped = declare_rounds.find_all_stopped(["first", "second"])
    assert stopped == {"bad": pytest.approx(0.051)}  # rising is four points behind flat credit's 0.75 on seed 1
    chosen = select_best(tuned, BOTH, stopped)
    assert {name: files[1] for name, files in chosen.items()} == {
        "flat": "configs/rates/x2.yaml",
        "good": "configs/rates/x1.yaml",
        "rising": "configs/rates/x4.yaml",
    }
    assert "| good | 0.630 (2) | **0.675 (2)** | 0.990 (1) |" in render_area_table(BOTH)


def test_what_is_declared_can_be_read_and_keeps_budget_and_questions(tuned, tmp_path):
    conditions = select_best(tuned, BOTH, {"bad"})
    plan = declare_campaign(tuned, "best", conditions, range(500, 508), "flat")
    path = tmp_path / "best.yaml"
    path.write_text(yaml.safe_dump(plan))
    declared = read_declaration(path)
    assert declared.budget == tuned.budget
    assert declared.held_out == tuned.held_out
    assert declared.settings == tuned.settings
    assert declared.summary == "area"
    assert not declared.exploratory
    assert declare_campaign(tuned, "best", conditions, [1, 2], "flat")["exploratory"]
    with pytest.raises(ValueError, match="first round"):
        declare_campaign(tuned, "best", conditions, [0, 1], "flat")
