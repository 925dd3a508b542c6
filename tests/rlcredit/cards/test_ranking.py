"""Shipped rows, and those beside them."""

import dataclasses
import math
import shlex

import pytest

from rlcredit.cards import ranking
from rlcredit.cards.card import BASELINE_VERDICT, NO_DIFFERENCE
from rlcredit.cards.card_command import _select_comparable_cards
from rlcredit.cards.leaderboard import write_leaderboard
from rlcredit.cards.ranking import rank_conditions, reconstruct_gain_test, summarise_card, summarise_leaderboard
from tests.rlcredit.cards.cards import made


@pytest.fixture
def _shipped(tmp_path, monkeypatch):
    """Ship four cards of two organisms."""
    cards = [made(name, 1.0, organism=where) for where in ("aligned", "decoy") for name in ("Good", "Bad")]
    write_leaderboard([ranking.summarise_card(card) for card in cards], tmp_path)
    monkeypatch.setattr(ranking, "SHIPPED_CARDS", tmp_path / "leaderboard.csv")


@pytest.mark.usefixtures("_shipped")
def test_cards_of_ones_own_stand_beside_shipped_ones():
    rows = ranking.add_shipped_rows([made("Mine", 2.0, organism="decoy"), made("Good", 3.0, organism="decoy")])
    assert [(row["condition"], row["organism"], row["gain"]) for row in rows] == [
        ("Good", "decoy", "3"),
        ("Bad", "decoy", "1"),
        ("Mine", "decoy", "2"),
    ]


@pytest.mark.usefixtures("_shipped")
@pytest.mark.parametrize("other", [{"budget": "full"}, {"baseline": "MaxRL"}, {"organism": "backward"}])
def test_what_cannot_be_compared_does_not_stand_beside(other):
    assert len(ranking.add_shipped_rows([dataclasses.replace(made("Mine", 2.0), **other)])) == 1


@pytest.mark.usefixtures("_shipped")
@pytest.mark.parametrize("origins", [("Mine", "aligned", "my/GRPO.yaml"), ("Mine", "my/aligned.yaml", "GRPO")])
def test_what_is_called_like_a_shipped_one_is_not_it(origins):
    assert len(ranking.add_shipped_rows([dataclasses.replace(made("Mine", 2.0), origins=origins)])) == 1


def test_earlier_cards_stand_beside_what_they_can_be_compared_with():
    new = made("Mine", 2.0)
    kept = {
        "same": made("Earlier", 1.0),
        "other organism": dataclasses.replace(made("Earlier", 1.0, organism="decoy"), grounds=("dec0", "ba5e")),
        "edited organism": dataclasses.replace(made("Earlier", 1.0), grounds=("0ld", "ba5e")),
        "edited baseline": dataclasses.replace(made("Earlier", 1.0), grounds=("5eed", "0ld")),
        "other budget": dataclasses.replace(made("Earlier", 1.0), budget="full"),
    }
    found = _select_comparable_cards([new], [*kept.values()])
    assert [name for name, card in kept.items() if card in found] == ["same", "other organism"]


def test_a_row_says_how_it_was_made():
    shown = ranking.summarise_card(made("Good", 1.0, organism="decoy"))
    assert shown["command"] == "rlcredit card Good --budget quick --organism decoy --baseline GRPO"
    assert shown["commit"] == "0123abc"


def test_its_command_names_files_as_they_were_named():
    origins = ("here, not there/mine.py:Halved", "configs/smollm2.yaml", "configs/conditions/sepa_paper/c5_maxrl.yaml")
    card = dataclasses.replace(made("Halved", 1.0, organism="smollm2"), baseline="c5_maxrl", origins=origins)
    assert shlex.split(card.command(made("Halved", 1.0, organism="aligned"))) == [
        *("rlcredit", "card", "here, not there/mine.py:Halved", "--budget", "quick"),
        *("--organism", "configs/smollm2.yaml", "aligned"),
        *("--baseline", "configs/conditions/sepa_paper/c5_maxrl.yaml"),
    ]


ORGANISMS = ("aligned", "decoy")


def board(**gains):
    """Return the rows of conditions that gain the same everywhere, and of the baseline."""
    cards = [made(name, gain, organism=place) for name, gain in gains.items() for place in ORGANISMS]
    return [
        summarise_card(card) for card in [*cards, *(made("GRPO", 0.0, BASELINE_VERDICT, place) for place in ORGANISMS)]
    ]


def test_what_gains_most_on_average_stands_first():
    assert [ranked.name for ranked in rank_conditions(board(Bad=-6.0, Good=4.0))] == ["Good", "GRPO", "Bad"]


def test_a_gain_is_the_test_that_its_interval_came_from():
    test = reconstruct_gain_test(summarise_card(made("Good", 4.0)))  # 2 points, 1 to 3, of six pairs
    assert test is not None
    assert (test.difference, test.df) == (2.0, 5)
    assert test.interval[:2] == pytest.approx((1.0, 3.0))
    assert test.standard_error == pytest.approx(1 / 2.570582)
    assert reconstruct_gain_test(summarise_card(made("GRPO", 0.0, BASELINE_VERDICT))) is None


def test_the_mean_of_two_organisms_is_known_better_than_either():
    good = rank_conditions(board(Good=4.0))[0]
    assert good.mean is not None
    assert good.mean.standard_error == pytest.approx(1 / 2.570582 / math.sqrt(2))
    assert good.mean.df == pytest.approx(10)


def test_what_one_comparison_would_find_many_do_not():
    alone = rank_conditions(board(Good=1.3))[0]
    assert alone.is_significant
    many = dict.fromkeys(("A", "B", "C", "D"), 0.0)
    among = next(each for each in rank_conditions(board(Good=1.3, **many)) if each.name == "Good")
    assert among.p == pytest.approx(5 * alone.p)
    assert not among.is_significant


def test_it_is_said_in_words():
    assert summarise_leaderboard(board(Good=4.0, Even=0.0, Bad=-6.0)) == (
        "Of 6 intervals 2 lie above zero and 2 below; 0.2 on each side would if nothing made a difference. "
        "After Holm correction over 3 conditions, 1 (Good) has a positive mean gain and 1 (Bad) has a negative one."
    )
    assert "none has a positive mean gain and none has a negative one" in summarise_leaderboard(board(Even=0.0))
    assert summarise_leaderboard(board()) == ""


def test_what_makes_no_difference_is_no_comparison():
    rows = [
        {**row, "verdict": NO_DIFFERENCE} if row["condition"] == "Idle" else row for row in board(Good=4.0, Idle=0.0)
    ]
    assert summarise_leaderboard(rows).startswith(
        "Of 2 intervals (2 more make no difference) 2 lie above zero and 0 below;"
    )
