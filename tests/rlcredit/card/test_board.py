"""Shipped rows, and those beside them."""

import dataclasses
import shlex

import pytest

from rlcredit.card import board
from rlcredit.card.command import _select_comparable_cards
from rlcredit.card.leaderboard import write_leaderboard
from tests.rlcredit.card.cards import made


@pytest.fixture
def _shipped(tmp_path, monkeypatch):
    """Ship four cards of two organisms."""
    cards = [made(name, 1.0, organism=where) for where in ("aligned", "decoy") for name in ("Good", "Bad")]
    write_leaderboard([board.summarise_card(card) for card in cards], tmp_path)
    monkeypatch.setattr(board, "SHIPPED", tmp_path / "leaderboard.csv")


@pytest.mark.usefixtures("_shipped")
def test_cards_of_ones_own_stand_beside_shipped_ones():
    rows = board.add_shipped_rows([made("Mine", 2.0, organism="decoy"), made("Good", 3.0, organism="decoy")])
    assert [(row["condition"], row["organism"], row["gain"]) for row in rows] == [
        ("Good", "decoy", "3"),
        ("Bad", "decoy", "1"),
        ("Mine", "decoy", "2"),
    ]


@pytest.mark.usefixtures("_shipped")
@pytest.mark.parametrize("other", [{"budget": "full"}, {"baseline": "MaxRL"}, {"organism": "backward"}])
def test_what_cannot_be_compared_does_not_stand_beside(other):
    assert len(board.add_shipped_rows([dataclasses.replace(made("Mine", 2.0), **other)])) == 1


@pytest.mark.usefixtures("_shipped")
@pytest.mark.parametrize("origins", [("Mine", "aligned", "my/GRPO.yaml"), ("Mine", "my/aligned.yaml", "GRPO")])
def test_what_is_called_like_a_shipped_one_is_not_it(origins):
    assert len(board.add_shipped_rows([dataclasses.replace(made("Mine", 2.0), origins=origins)])) == 1


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
    shown = board.summarise_card(made("Good", 1.0, organism="decoy"))
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
