"""Verdicts."""

from types import SimpleNamespace

import pytest

from rlcredit.card.card import NONE, decided
from rlcredit.card.finding import Finding
from rlcredit.statistics.t_test import paired_t
from tests.rlcredit.card.cards import made


@pytest.mark.parametrize(
    ("moved", "alike", "verdict"),
    [(0.0, True, NONE), (5e-9, True, NONE), (0.8, True, "equivalent"), (0.0, False, "equivalent")],
)
def test_no_difference_takes_equal_credit_and_equal_answers(moved, alike, verdict):
    card = made("Mine", 0.0)
    card.sections = {"batch": [Finding("moved", "credit moved", moved, "share")]}
    compared = SimpleNamespace(verdict="equivalent", test=paired_t([0.0, 0.0]))
    learnt = SimpleNamespace(alike=alike, comparison=compared, runs=[None] * 2)
    assert decided(card, learnt)[0] == verdict
