"""Conditions beside each other on several organisms."""

import csv

import pytest

from rlcredit.card import leaderboard
from rlcredit.card.board import row
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
    assert [name for name, _ in leaderboard.ranked([row(card) for card in cards])] == ["Good", "GRPO", "Bad"]


def test_markdown_has_a_line_per_condition_and_a_column_per_organism(cards):
    head, _, *lines = leaderboard.markdown([row(card) for card in cards])
    assert head == "| condition | aligned | decoy | mean |"
    assert lines[0] == "| Good | +2.0 (+1.0 to +3.0) | +1.0 (+0.0 to +2.0) | +1.5 |"
    assert lines[1] == "| GRPO | 0 | 0 | +0.0 |"


def test_all_of_it_is_written(cards, tmp_path):
    page = leaderboard.written(cards, tmp_path).read_text()
    assert page.count("<tr") == 2 + len(cards)
    assert 'data-value="4"' in page
    assert (tmp_path / "leaderboard.png").stat().st_size > 5000
    with (tmp_path / "leaderboard.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(each["condition"], each["organism"], each["gain"], each["moved_low"]) for each in rows][1] == (
        "Good",
        "aligned",
        "4",
        "0.2",
    )
