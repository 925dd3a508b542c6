"""How far credit agrees with true credit."""

import copy

import pytest
import torch

from rlcredit.cards.true_credit import measure_credit_agreement
from rlcredit.oracle.credit_agreement import credit_fork_mask
from tests.slow_cases import mark_others_slow


def found(batch, name):
    base = batch("GRPO")
    return {one.name: one for one in measure_credit_agreement(batch(name), base, base.truth)}


def test_true_credit_agrees_with_itself_and_its_opposite_does_not(batch):
    base = batch("GRPO")
    exact, opposite = copy.copy(base), copy.copy(base)
    for one, sign in ((exact, 1), (opposite, -1)):
        one.rollout = copy.copy(base.rollout)
        one.rollout.advantages = base.rollout.advantages.clone()
        one.rollout.advantages[list(base.truth.rows)] = sign * base.truth.credit.float()
    right, wrong = ({o.name: o for o in measure_credit_agreement(one, base, base.truth)} for one in (exact, opposite))
    assert right["cosine"].estimate == pytest.approx(1)
    assert wrong["cosine_within"].estimate == pytest.approx(-1)
    assert right["wrong_signs"].estimate == 0
    assert wrong["wrong_signs"].estimate == 1


@pytest.mark.parametrize("other", mark_others_slow(["GRPO", "GTPO", "HICRA", "EntropyMask", "RandomMask"], fast=2))
def test_measured_credit_agrees_best(batch, other):
    measured, guessed = found(batch, "MonteCarloCredit"), found(batch, other)
    assert measured["cosine"].estimate > guessed["cosine"].estimate + 0.2
    assert measured["cosine_within"].estimate > guessed["cosine_within"].estimate
    assert measured["wrong_signs"].estimate <= guessed["wrong_signs"].estimate


@pytest.mark.parametrize("sign", [1, -1])
def test_no_wrong_sign_among_few_tokens_is_no_certainty(batch, sign):
    base, exact = batch("GRPO"), copy.copy(batch("GRPO"))
    exact.rollout = copy.copy(base.rollout)
    exact.rollout.advantages = base.rollout.advantages.clone()
    exact.rollout.advantages[list(base.truth.rows)] = sign * base.truth.credit.float()
    wrong = {one.name: one for one in measure_credit_agreement(exact, base, base.truth)}["wrong_signs"]
    unseen = 1 - 0.025 ** (1 / int(credit_fork_mask(base.truth).any(-1).sum()))
    assert (wrong.low, wrong.high) == pytest.approx((0, unseen) if sign == 1 else (1 - unseen, 1))
    assert f"{int(credit_fork_mask(base.truth).sum())} tokens that decide" in wrong.sentence


def test_what_gives_no_credit_has_no_sign(batch):
    base, silent = batch("GRPO"), copy.copy(batch("GRPO"))
    silent.rollout = copy.copy(base.rollout)
    silent.rollout.advantages = torch.zeros_like(base.rollout.advantages)
    assert "wrong_signs" not in {one.name for one in measure_credit_agreement(silent, base, base.truth)}


def test_flat_credit_says_nothing_inside_completions(batch):
    assert found(batch, "GRPO")["cosine_within"].estimate == 0
