"""Shipped rows, and those beside them."""

from rlcredit.card import board
from rlcredit.card.leaderboard import written
from tests.rlcredit.card.cards import made


def test_shipped_cards_stand_beside_ones_own(tmp_path, monkeypatch):
    written([made(name, 1.0, organism=where) for name in ("Good", "Bad") for where in ("aligned", "decoy")], tmp_path)
    monkeypatch.setattr(board, "SHIPPED", tmp_path / "leaderboard.csv")
    assert {row["condition"] for row in board.rows_of("aligned", "quick")} == {"Good", "Bad"}
    assert {row["condition"] for row in board.rows_of("aligned", "quick", but="Good")} == {"Bad"}
    assert board.rows_of("aligned", "full") == []
