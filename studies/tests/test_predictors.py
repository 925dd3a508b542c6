"""Which measurement foretells learning, where the answer is planted."""

import numpy as np
import pytest
from scipy import stats

from rlcredit.cards.card import BASELINE_VERDICT, NO_DIFFERENCE
from studies.leaderboard.predictors import FEWEST, PROBES, correlate_predictors, spearman_correlation


def rows(number, organisms=("aligned", "decoy"), noise=0.0):
    """Return a board on which `cosine_within` is the gain, `angle` its size, and `moved` says nothing."""
    random, made = np.random.default_rng(0), []
    for place, organism in enumerate(organisms):
        for each, gain in enumerate(np.linspace(-5, 4, number)):
            probe = gain + 100 * place + noise * random.normal()
            found = {"cosine_within": probe, "angle": abs(gain), "moved": random.random()}
            cells = {name: f"{found[name]:.6g}" if name in found else "" for name in PROBES}
            keys = {"condition": f"c{each}", "organism": organism, "verdict": "undecided"}
            made.append({**keys, "area_gain": f"{gain:.6g}", **cells})
    return made


def by(known):
    return {(each.probe, each.outcome): each for each in known}


def test_what_is_planted_is_found_on_every_organism_alone():
    found = by(correlate_predictors(rows(20)))
    assert found["cosine_within", "gain"].correlation == 1.0  # the organisms' own level of a hundred is no part of it
    assert found["angle", "size"].correlation == pytest.approx(1.0)
    assert abs(found["angle", "gain"].correlation) < 0.5
    nothing = found["moved", "gain"]
    assert nothing.interval.low < 0 < nothing.interval.high
    assert (nothing.cards, nothing.organisms) == (40, 2)


def test_an_interval_is_wider_with_fewer_conditions():
    few, many = (
        by(correlate_predictors(rows(number, noise=2.0)))["cosine_within", "gain"].interval for number in (8, 40)
    )
    assert few.high - few.low > many.high - many.low


def test_a_handful_of_conditions_has_no_order():
    assert list(correlate_predictors(rows(FEWEST - 1))) == []


def test_what_was_not_measured_foretells_nothing():
    assert {each.probe for each in correlate_predictors(rows(12))} == {"cosine_within", "angle", "moved"}


def test_what_makes_no_difference_has_no_part_in_it():
    idle = [{**each, "condition": "idle", "verdict": NO_DIFFERENCE, "area_gain": "0"} for each in rows(1)]
    itself = [{**each, "condition": "GRPO", "verdict": BASELINE_VERDICT, "area_gain": ""} for each in rows(1)]
    assert list(correlate_predictors([*rows(12), *idle, *itself])) == list(correlate_predictors(rows(12)))


def test_gains_of_one_size_have_no_order():
    board = rows(12)
    for place, row in enumerate(board):
        if row["organism"] == "decoy":
            row["area_gain"] = ("1", "-1")[place % 2]
    assert list(correlate_predictors(board)) == list(correlate_predictors(rows(12, organisms=("aligned",))))


def test_where_most_measure_the_same_there_is_no_order():
    board = rows(12)
    same = {f"c{number}" for number in range(7)}
    for row in board:
        if row["condition"] in same and row["organism"] == "decoy":
            row["moved"] = "0.125"
    found = by(correlate_predictors(board))["moved", "gain"]
    assert (found.cards, found.organisms) == (12, 1)
    assert found == by(correlate_predictors(rows(12, organisms=("aligned",))))["moved", "gain"]


@pytest.mark.parametrize("seed", range(5))
def test_it_is_scipys_with_and_without_ties(seed):
    left, right = np.random.default_rng(seed).normal(size=(2, 12)).round(seed % 2)
    assert spearman_correlation(left, right) == pytest.approx(stats.spearmanr(left, right).statistic)


def test_a_constant_has_no_order():
    assert np.isnan(spearman_correlation([1, 1, 1], [1, 2, 3]))
