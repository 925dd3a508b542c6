"""The rounds in which batches and rates are chosen at equal tokens, on results made up for it."""

import pytest
import yaml
from docs.studies.equal_tokens import declare_rounds
from docs.studies.equal_tokens.declare_rounds import (
    Setting,
    choose_setting,
    declare_campaign,
    describe_doubts,
    find_stopped_kinds,
    name_condition,
    parse_condition,
    read_areas,
    render_area_table,
    select_best,
    select_repeated,
)

from rlcredit.campaign.declaration import read_declaration

LARGE, SMALL, FAST, SINGLE = Setting(4, 2.0), Setting(2, 1.0), Setting(2, 2.0), Setting(1, 1.0)
FIRST = {
    "flat": {LARGE: {0: 0.70}, SMALL: {0: 0.70}},
    "good": {LARGE: {0: 0.65}, SMALL: {0: 0.76}},
    "bad": {LARGE: {0: 0.649}, SMALL: {0: 0.5}},
    "fair": {LARGE: {0: 0.66}, SMALL: {0: 0.651}},
    "slow": {LARGE: {0: 0.652}, SMALL: {0: 0.1}},
}
BOTH = FIRST | {
    "flat": {LARGE: {0: 0.99}, SMALL: {0: 0.70, 1: 0.71}, FAST: {1: 0.75}, SINGLE: {1: 0.75}},
    "good": {LARGE: {0: 0.65}, SMALL: {0: 0.76, 1: 0.80, 2: 0.90}, FAST: {1: 0.79, 2: 0.89}, SINGLE: {1: 0.95, 2: 0.7}},
}


@pytest.fixture
def tuned(tmp_path):
    grid = "\n".join(
        f"  {name_condition(kind, setting)}: [configs/conditions/sepa_paper/c1_grpo.yaml, configs/rates/x1.yaml]"
        for kind in FIRST
        for setting in (LARGE, SMALL)
    )
    path = tmp_path / "grid.yaml"
    path.write_text(
        f"name: grid\nconfigs: [configs/tiny.yaml]\nconditions:\n{grid}\nbaseline: flat_p4_x2\nseeds: [0]\n"
        "budget: {decoded_tokens: 1000, evaluations: 2}\nprimary: val/pass_at_1\nsummary: area\neffect: 0.02\n"
        "exploratory: true\nheld_out: {questions: by_seed, draws: by_seed}\n"
        "settings: {checkpoint.every_n_train_steps: 9}\n"
    )
    return read_declaration(path)


def test_areas_are_mean_heights_over_the_budget_by_kind_setting_and_seed(monkeypatch):
    rows = [
        {"condition": condition, "seed": seed, "budget": mark, "val/pass_at_1": height}
        for condition, seed, heights in (("flat_x05", "7", (0.2, 0.4, 0.4)), ("flat_p28_x2", "8", (0.0, 0.0, 1.0)))
        for mark, height in zip(("0", "500", "1000"), heights, strict=True)
    ]
    monkeypatch.setattr(declare_rounds, "read_results", lambda name: rows if name == "grid/runs" else [])
    areas = read_areas(["grid", "other"])
    assert areas == {
        "flat": {Setting(0, 0.5): {7: pytest.approx(0.35)}, Setting(28, 2.0): {8: pytest.approx(0.25)}},
    }


@pytest.mark.parametrize("condition", ["flat", "flat_p4", "flat_x"])
def test_a_condition_whose_name_says_no_setting_is_refused(condition):
    with pytest.raises(ValueError, match="NAME_pPROMPTS_xFACTOR"):
        parse_condition(condition)


def test_a_kind_more_than_five_points_behind_is_stopped():
    assert find_stopped_kinds(FIRST) == {"bad": pytest.approx(0.051)}


def test_flat_and_the_two_best_others_have_a_second_round_with_other_rates_and_half_the_prompts(tuned):
    selected = select_repeated(tuned, FIRST)
    assert [*selected] == [
        *("flat_p2_x05", "flat_p2_x1", "flat_p2_x2", "flat_p1_x05"),  # of equal ones the one with fewer prompts
        *("good_p2_x05", "good_p2_x1", "good_p2_x2", "good_p1_x05"),
        *("fair_p4_x1", "fair_p4_x2", "fair_p4_x4", "fair_p2_x1"),
    ]
    rate = ("configs/rates/falling.yaml", "configs/rates/x4.yaml")
    assert selected["fair_p4_x4"][1:] == ("configs/batches/p4.yaml", *rate)


def test_a_setting_is_chosen_among_those_of_the_last_round_on_the_seeds_that_all_of_them_have(tuned):
    assert choose_setting(BOTH["flat"]) == SINGLE  # the area of 4 prompts is of the first round only
    assert choose_setting(BOTH["good"]) == SMALL
    chosen = select_best(tuned, BOTH, ["flat", "good"])
    assert {kind: files[1:] for kind, files in chosen.items()} == {
        "flat": ("configs/batches/p1.yaml", "configs/rates/falling.yaml", "configs/rates/x1.yaml"),
        "good": ("configs/batches/p2.yaml", "configs/rates/falling.yaml", "configs/rates/x1.yaml"),
    }
    assert "| good | 0.650 (1) | **0.820 (3)** | 0.840 (2) | 0.825 (2) |" in render_area_table(BOTH)


def test_a_setting_at_the_end_of_what_was_tried_is_said():
    (flat,), (bad,), (good,) = (describe_doubts("it", BOTH[kind]) for kind in ("flat", "bad", "good"))
    assert flat == "it: 1 prompt, x 1 is at the end of what was tried; fewer prompts or another rate may be better."
    assert bad == "it: 4 prompts, x 2 is at the end of what was tried; another rate may be better."
    assert good == "it: 2 prompts, x 1 is at the end of what was tried; a lower rate may be better."
    inside = {Setting(4, factor): {0: area} for factor, area in ((1.0, 0.1), (2.0, 0.2), (4.0, 0.1))}
    assert describe_doubts("it", inside) == []


def test_what_is_declared_can_be_read_and_keeps_budget_and_questions(tuned, tmp_path):
    conditions = select_best(tuned, BOTH, ["flat", "good"])
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
