"""Mean gains over organisms, and what many comparisons leave of them."""

import math

import pytest

from rlcredit.card.board import summarise_card
from rlcredit.card.card import ITSELF, NONE
from rlcredit.card.standing import rank_conditions, reconstruct_gain_test, summarise_leaderboard
from tests.rlcredit.card.cards import made

ORGANISMS = ("aligned", "decoy")


def board(**gains):
    """Return the rows of conditions that gain the same everywhere, and of the baseline."""
    cards = [made(name, gain, organism=place) for name, gain in gains.items() for place in ORGANISMS]
    return [summarise_card(card) for card in [*cards, *(made("GRPO", 0.0, ITSELF, place) for place in ORGANISMS)]]


def test_what_gains_most_on_average_stands_first():
    assert [standing.name for standing in rank_conditions(board(Bad=-6.0, Good=4.0))] == ["Good", "GRPO", "Bad"]


def test_a_gain_is_the_test_that_its_interval_came_from():
    test = reconstruct_gain_test(summarise_card(made("Good", 4.0)))  # 2 points, 1 to 3, of six pairs
    assert test is not None
    assert (test.difference, test.df) == (2.0, 5)
    assert test.interval[:2] == pytest.approx((1.0, 3.0))
    assert test.standard_error == pytest.approx(1 / 2.570582)
    assert reconstruct_gain_test(summarise_card(made("GRPO", 0.0, ITSELF))) is None


def test_the_mean_of_two_organisms_is_known_better_than_either():
    good = rank_conditions(board(Good=4.0))[0]
    assert good.mean is not None
    assert good.mean.standard_error == pytest.approx(1 / 2.570582 / math.sqrt(2))
    assert good.mean.df == pytest.approx(10)


def test_what_one_comparison_would_find_many_do_not():
    alone = rank_conditions(board(Good=1.3))[0]
    assert alone.decided
    many = dict.fromkeys(("A", "B", "C", "D"), 0.0)
    among = next(each for each in rank_conditions(board(Good=1.3, **many)) if each.name == "Good")
    assert among.p == pytest.approx(5 * alone.p)
    assert not among.decided


def test_it_is_said_in_words():
    assert summarise_leaderboard(board(Good=4.0, Even=0.0, Bad=-6.0)) == (
        "Of 6 intervals 2 lie above zero and 2 below; 0.2 on each side would if nothing made a difference. "
        "Of the means of 3 conditions, corrected for all of them, 1 lies (Good) above zero and 1 lies (Bad) below."
    )
    assert "none lies above zero and none lies below" in summarise_leaderboard(board(Even=0.0))
    assert summarise_leaderboard(board()) == ""


def test_what_makes_no_difference_is_no_comparison():
    rows = [{**row, "verdict": NONE} if row["condition"] == "Idle" else row for row in board(Good=4.0, Idle=0.0)]
    assert summarise_leaderboard(rows).startswith(
        "Of 2 intervals (2 more make no difference) 2 lie above zero and 0 below;"
    )
