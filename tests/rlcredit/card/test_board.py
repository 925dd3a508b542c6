"""Conditions beside each other."""

import csv

import pytest

from rlcredit.card import board
from rlcredit.card.card import ITSELF
from tests.rlcredit.card.cards import made


@pytest.fixture
def cards():
    return [
        made("GRPO", 0.0, ITSELF),
        made("Good", 4.0),
        made("Bad", -6.0, "worse"),
        made("GRPO", 0.0, ITSELF, "decoy"),
        made("Good", 2.0, "undecided: a new campaign needs 20 seeds", "decoy"),
        made("Bad", -2.0, "worse", "decoy"),
    ]


def test_the_best_on_average_stands_first(cards):
    assert [name for name, _ in board.ranked([board.row(card) for card in cards])] == ["Good", "GRPO", "Bad"]


def test_markdown_has_a_line_per_condition_and_a_column_per_organism(cards):
    head, _, *lines = board.markdown([board.row(card) for card in cards])
    assert head == "| condition | aligned | decoy | mean |"
    assert lines[0] == "| Good | +2.0 (+1.0 to +3.0) | +1.0 (+0.0 to +2.0) | +1.5 |"
    assert lines[1] == "| GRPO | 0 | 0 | +0.0 |"


def test_all_of_it_is_written(cards, tmp_path):
    page = board.written(cards, tmp_path).read_text()
    assert page.count("<tr") == 2 + len(cards)
    assert 'data-value="4"' in page
    assert (tmp_path / "leaderboard.png").stat().st_size > 5000
    with (tmp_path / "leaderboard.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["condition"], row["organism"], row["gain"], row["moved_low"]) for row in rows][1] == (
        "Good",
        "aligned",
        "4",
        "0.2",
    )


def test_shipped_cards_stand_beside_ones_own(cards, tmp_path, monkeypatch):
    board.written(cards, tmp_path)
    monkeypatch.setattr(board, "SHIPPED", tmp_path / "leaderboard.csv")
    assert {row["condition"] for row in board.rows_of("aligned", "quick")} == {"GRPO", "Good", "Bad"}
    assert {row["condition"] for row in board.rows_of("aligned", "quick", but="Good")} == {"GRPO", "Bad"}
    assert board.rows_of("aligned", "full") == []
