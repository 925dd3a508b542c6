"""Rows of new cards beside those that ship."""

import sys

import pytest

from rlcredit.cards.card import BASELINE_VERDICT
from rlcredit.cards.ranking import summarise_card
from studies import csv_rows
from studies.leaderboard import keep_cards
from tests.rlcredit.cards.cards import made


def test_new_rows_replace_those_of_the_same_condition_organism_and_budget():
    kept = [summarise_card(made("GTPO", 1.0)), summarise_card(made("GTPO", 1.0, organism="decoy"))]
    rows = keep_cards.merge_leaderboard_rows(
        kept, [summarise_card(made("EAPO", 2.0, organism="decoy")), summarise_card(made("GTPO", 3.0))]
    )
    assert [(each["condition"], each["organism"], each["gain"]) for each in rows] == [
        ("GTPO", "aligned", "3"),
        ("EAPO", "decoy", "2"),
        ("GTPO", "decoy", "1"),
    ]


def test_the_board_is_kept_drawn_and_printed(tmp_path, monkeypatch, capsys):
    board, picture = tmp_path / "shipped.csv", tmp_path / "leaderboard.png"
    cards = [made("GRPO", 0.0, BASELINE_VERDICT), made("GTPO", 3.0)]
    for card in cards:
        (place := tmp_path / "cards" / card.organism / card.budget / card.name).mkdir(parents=True)
        card.write(place / "card.json")
    monkeypatch.setattr(sys, "argv", f"keep_cards.py {tmp_path / 'cards'} --board {board} --picture {picture}".split())
    keep_cards.main()
    assert csv_rows.read_csv_rows(board) == [summarise_card(card) for card in cards]
    assert picture.stat().st_size > 0
    assert "| GTPO | +1.5 (+0.5 to +2.5) | **+1.5 (+0.5 to +2.5)** |" in capsys.readouterr().out


def test_a_folder_without_cards_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["keep_cards.py", str(tmp_path)])
    with pytest.raises(SystemExit):
        keep_cards.main()
    assert "has no card" in capsys.readouterr().err
