"""Verdicts."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from rlcredit.cards.card import NO_DIFFERENCE
from rlcredit.cards.finding import Finding
from rlcredit.cards.stack_properties import describe_rewards_counted
from rlcredit.cards.training_outcome import conclude_card
from rlcredit.statistics.t_test import paired_t_test
from tests.rlcredit.cards.cards import made


@pytest.mark.parametrize(
    ("moved", "alike", "verdict"),
    [(0.0, True, NO_DIFFERENCE), (5e-9, True, NO_DIFFERENCE), (0.8, True, "equivalent"), (0.0, False, "equivalent")],
)
def test_no_difference_takes_equal_credit_and_equal_answers(moved, alike, verdict):
    card = made("Mine", 0.0)
    card.sections = {"batch": [Finding("moved", "credit moved", moved, "share")]}
    compared = SimpleNamespace(verdict="equivalent", test=paired_t_test([0.0, 0.0]))
    learnt = SimpleNamespace(has_equal_answers=alike, comparison=compared, runs=[None] * 2, steps=30)
    assert conclude_card(card, learnt)[0] == verdict


def test_equivalence_names_the_interval_that_shows_it():
    test = paired_t_test([-0.008, -0.006, 0.004, 0.008, -0.012, 0.005])  # 95 %: -1.00 to +0.70, 90 %: -0.81 to +0.51
    compared = SimpleNamespace(verdict="equivalent within 1 pp", test=test)
    learnt = SimpleNamespace(has_equal_answers=False, comparison=compared, runs=[None] * 6, steps=30)
    verdict, sentence = conclude_card(made("Mine", 0.0), learnt)
    assert verdict == "equivalent within 1 pp"
    assert sentence.startswith(
        "After 6 paired runs of 30 steps Mine ends 0.2 points below GRPO (from 1.0 below to 0.7 above); "
    )
    assert sentence.endswith("the 90 % interval, -0.8 to +0.5, lies within.")


def test_what_has_another_baseline_lies_elsewhere():
    card = made("Mine", 0.0)
    assert card.folder_stem == "Mine"
    assert replace(card, baseline="MaxRL").folder_stem == "Mine-against-MaxRL"
    assert replace(card, name="MaxRL", baseline="MaxRL").folder_stem == "MaxRL"


def test_a_card_says_how_rewards_counted_where_they_are_not_verdicts():
    texts = "", "mine.length; right is a reward of 1 or more"
    said = [[(one.name, one.holds, one.sentence) for one in describe_rewards_counted(text)] for text in texts]
    assert said == [[], [("reward functions", None, "mine.length; right is a reward of 1 or more")]]
