"""How far credit agrees with true credit."""

import copy

import pytest

from rlcredit.card.truth import agreed


def found(batch, name):
    base = batch("GRPO")
    return {one.name: one for one in agreed(batch(name), base, base.truth)}


def test_true_credit_agrees_with_itself_and_its_opposite_does_not(batch):
    base = batch("GRPO")
    exact, opposite = copy.copy(base), copy.copy(base)
    for one, sign in ((exact, 1), (opposite, -1)):
        one.rollout = copy.copy(base.rollout)
        one.rollout.advantages = base.rollout.advantages.clone()
        one.rollout.advantages[list(base.truth.rows)] = sign * base.truth.credit.float()
    right, wrong = ({o.name: o for o in agreed(one, base, base.truth)} for one in (exact, opposite))
    assert right["cosine"].estimate == pytest.approx(1)
    assert wrong["cosine_within"].estimate == pytest.approx(-1)
    assert right["wrong_signs"].estimate == 0
    assert wrong["wrong_signs"].estimate == 1


@pytest.mark.parametrize("other", ["GRPO", "GTPO", "HICRA", "EntropyMask", "RandomMask"])
def test_measured_credit_agrees_best(batch, other):
    measured, guessed = found(batch, "MonteCarloCredit"), found(batch, other)
    assert measured["cosine"].estimate > guessed["cosine"].estimate + 0.2
    assert measured["cosine_within"].estimate > guessed["cosine_within"].estimate
    assert measured["wrong_signs"].estimate <= guessed["wrong_signs"].estimate


def test_flat_credit_says_nothing_inside_completions(batch):
    assert found(batch, "GRPO")["cosine_within"].estimate == 0
