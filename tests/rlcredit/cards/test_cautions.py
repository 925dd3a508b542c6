"""What stands beside a verdict."""

import dataclasses

import pytest

from rlcredit.cards.card import NO_DIFFERENCE
from rlcredit.cards.cautions import list_verdict_cautions
from rlcredit.cards.finding import Finding
from rlcredit.cards.ranking import Leaderboard, summarise_card
from tests.rlcredit.cards.cards import made


def say(card, *others):
    board = Leaderboard([summarise_card(each) for each in (card, *others)])
    return " ".join(list_verdict_cautions(card, board))


def stepping(length, rate, budget="quick"):
    """Return a card whose gradient has another length, at a learning rate beside the baseline's of one."""
    card = dataclasses.replace(made("Mine", 2.0), budget=budget)
    found = [Finding("length", "length", length, "times"), Finding("rate", "rate", rate, baseline=1.0)]
    return dataclasses.replace(card, sections={**card.sections, "gradient": found})


@pytest.mark.parametrize(
    ("length", "rate", "budget", "advised"),
    [(2.9, 1.0, "quick", True), (0.3, 1.0, "quick", True), (1.2, 1.0, "quick", False), (2.9, 0.5, "standard", False)],
)
def test_a_longer_gradient_at_the_same_rate_is_said(length, rate, budget, advised):
    said = say(stepping(length, rate, budget))
    assert (f"{length:.1f} times as long as that of GRPO" in said) == advised
    assert ("--budget standard gives each its own rate" in said) == advised


def test_one_of_several_comparisons_is_said_where_something_was_found():
    others = [made("Other", 1.0), made("Third", 0.0, NO_DIFFERENCE)]
    assert "one of 2 comparisons with GRPO on aligned" in say(made("Mine", 2.0), *others)
    assert "comparisons" not in say(made("Mine", 2.0))
    undecided = say(made("Mine", 2.0, "undecided: a new campaign needs 20 seeds"), *others)
    assert "comparisons" not in undecided
    assert "Held-out pass@1 after training is shown neither" in undecided


def test_nothing_is_said_where_nothing_was_compared():
    assert say(made("Mine", 0.0, NO_DIFFERENCE), made("Other", 1.0)) == ""
