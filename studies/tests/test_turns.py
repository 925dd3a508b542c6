"""Credit between turns: what is declared, and how signal-to-noise and agreement are measured."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
import yaml
from numpy.testing import assert_allclose

from rlcredit.campaign.declaration import parse_declaration
from rlcredit.credit.alternatives import Credit
from studies.csv_rows import read_csv_rows
from studies.numbers import NOT_RUN, STUDIES, Estimate, find_campaign, render_if_run
from studies.turns.declare_turns import ARMS, GAMES, declare_main, declare_rates
from studies.turns.measure_density import compare_with_truth, drop_unfinished_games, resample_signal_to_noise
from studies.turns.turns_numbers import fit_slope, tabulate_quantity, tabulate_slopes


@pytest.mark.parametrize("game", GAMES)
def test_rates_are_declared_as_the_script_says(game):
    plan = declare_rates(game)
    assert yaml.safe_load(find_campaign(plan["name"]).read_text(encoding="utf-8")) == plan


def test_the_comparison_has_eight_pairs_an_end_in_tokens_and_seeds_of_its_own():
    plan = declare_main("corridor_4th", dict.fromkeys(ARMS, 2.0) | {"flat": 4.0})
    declared = parse_declaration(plan, STUDIES / "turns" / "campaigns")
    assert len(declared.seeds) == 8
    assert declared.budget.key == "rollout_tokens"
    assert not {*declared.seeds} & {*declare_rates("corridor_4th")["seeds"]}
    assert declared.conditions["flat"][-1].endswith("x4.yaml")
    assert declared.conditions["gigpo"][-1].endswith("x2.yaml")


def test_a_prompt_drawn_twice_is_not_compared_with_itself():
    products = np.array([[4.0, 1.0, 1.0], [1.0, 4.0, 1.0], [1.0, 1.0, 4.0]])
    counts = np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0], [3.0, 0.0, 0.0]])
    assert_allclose(resample_signal_to_noise(products, counts), [1.0, 1.0, 0.0])  # 3 x 1 / (4 - 1); no pair in the last


@dataclass
class TwoEpisodes:
    """Two turns of one token each, an observation between them; each episode is a group."""

    turn = torch.tensor([[0, -1, 1], [0, -1, 1]])
    mask = turn >= 0
    group_size = 1


def test_agreement_is_a_cosine_whose_truth_has_no_noise_taken_twice():
    truth = torch.tensor([[0.0, 1.0], [0.0, 1.0]]).double()
    credit = Credit(torch.tensor([[0.5, 9.0, 0.5], [0.0, 9.0, 1.0]]))
    counts = np.array([[1.0, 1.0], [0.0, 2.0]])
    whole, second = compare_with_truth(TwoEpisodes(), credit, (truth, truth), counts, within=False)
    assert whole == pytest.approx(1.5 / np.sqrt(1.5 * 2))
    assert second == pytest.approx(1)
    within = compare_with_truth(TwoEpisodes(), credit, (truth, truth), counts, within=True)
    assert_allclose(within, [0.5 / np.sqrt(0.5 * 1), 1])  # the first episode's credit is equal, and says nothing


def test_a_slope_is_found_and_a_game_without_signal_leaves_none():
    gains = {rho: Estimate(rho**-0.5, rho**-0.5 / 1.2, rho**-0.5 * 1.2) for rho in (1.0, 0.25, 0.0625)}
    assert fit_slope(gains).mean == pytest.approx(-0.5)
    assert fit_slope(gains).low < -0.5 < fit_slope(gains).high < 0
    assert np.isnan(fit_slope(gains | {1.0: Estimate(0.0, 0.0, 1.0)}).mean)


def test_a_table_says_that_its_results_are_missing():
    assert render_if_run("no_such_results", lambda: "a table") == NOT_RUN


def write_rows(path, lines):
    head = "game,credit,quantity,estimate,low,high,prompts,completions,samples"
    path.write_text("\n".join([head, *lines, ""]), encoding="utf-8")


def test_a_game_that_was_cut_is_measured_again_and_whole_ones_are_tabulated(tmp_path):
    path = tmp_path / "density.csv"
    last = '"true credit, its error taken off",batch_gain,4,2,8,64,16,32'
    whole = [
        f"{game},GiGPO,gain,{gain},{gain / 2},{2 * gain},64,16,32"
        for game, gain in (("corridor_1", 1), ("corridor_4th", 2), ("corridor_16th", 4))
    ]
    ends = [f"{game},{last}" for game in ("corridor_1", "corridor_4th", "corridor_16th")]
    write_rows(path, [*whole, *ends, "bisection,GiGPO,gain,1,1,1,64,16,32"])
    assert drop_unfinished_games(path) == {"corridor_1", "corridor_4th", "corridor_16th"}
    rows = read_csv_rows(path)
    assert len(rows) == 6
    assert "| GiGPO | 1.00 (0.50 to 2.00) | 2.00 (1.00 to 4.00) | 4.00 (2.00 to 8.00) |" in tabulate_quantity(
        rows, "gain"
    )
    assert "| GiGPO | -0.50 (" in tabulate_slopes(rows)
