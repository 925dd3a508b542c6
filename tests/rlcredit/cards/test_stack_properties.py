"""What holds of a stack whatever the batch."""

import copy

import pytest
import torch

from callbacks.episode.grpo import GRPO
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.schedules.correctness_gate import CorrectnessGate
from rlcredit.cards.stack_properties import check_stack_properties
from rlcredit.credit.operator import CreditOperator


class First(CreditOperator, reads="advantages", writes="advantages"):
    """Credit the first completion of the batch more, and raise the credit of wide batches."""

    def assign(self, rollout):
        advantages = rollout.advantages.clone()
        advantages[0] *= 2
        rollout.advantages = advantages * rollout.mask.shape[1]
        return {}


class Restless(CreditOperator, reads="advantages", writes="advantages"):
    """Give other credit each time."""

    def assign(self, rollout):
        rollout.advantages = rollout.advantages * torch.rand(())
        return {}


class Shared(CreditOperator, reads="advantages", writes="advantages"):
    """Divide by the deviation of the whole batch."""

    def __init__(self, power: float = 1.0):
        super().__init__()
        self.power = power

    def assign(self, rollout):
        rollout.advantages = rollout.advantages / rollout.advantages[rollout.mask].std() ** self.power
        return {}


class Fading(CreditOperator, reads="advantages", writes="advantages"):
    """Give less each time, and tell nobody."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def assign(self, rollout):
        self.calls += 1
        rollout.advantages = rollout.advantages / self.calls
        return {}


class Declared(Fading, reads="advantages", writes="advantages", state="calls"):
    """Say so."""


class Tiny(CreditOperator, reads="advantages", writes="advantages"):
    """Make credit small."""

    def assign(self, rollout):
        rollout.advantages = rollout.advantages * 1e-7
        return {}


class Crowded(CreditOperator, reads="advantages", writes="advantages"):
    """Be another with eight prompts and more."""

    def assign(self, rollout):
        many = len(rollout.mask) >= 8 * rollout.group_size
        rollout.advantages = rollout.advantages * (2 if many else 1)
        return {}


class Nothing(CreditOperator, reads="advantages", writes="advantages"):
    """Give no credit."""

    def assign(self, rollout):
        rollout.advantages = torch.zeros_like(rollout.advantages)
        return {}


class Broken(CreditOperator, reads="advantages", writes="advantages"):
    """Fail on all batches but the whole one."""

    def assign(self, rollout):
        if len(rollout.mask) < 48:
            raise RuntimeError("too few")
        return {}


def held(batch, *stack):
    one = copy.copy(batch("GRPO"))
    one.stack = stack
    return {each.name: each for each in check_stack_properties(one)}


def test_grpo_is_what_it_should_be(batch):
    found = held(batch, GRPO())
    assert all(found[name].holds for name in ("bound", "repeatable", "order", "padding", "splitting", "verdicts"))
    assert found["rewards"].sentence.endswith("credit doubles; where all are higher by one, it stays")


def test_order_and_padding_that_matter_are_noticed(batch):
    found = held(batch, GRPO(), First())
    assert found["repeatable"].holds
    assert not found["order"].holds
    assert not found["padding"].holds


def test_chance_is_noticed(batch):
    found = held(batch, GRPO(), Restless())
    assert found["repeatable"].holds is False
    for name in ("memory", "order", "padding", "splitting", "rewards"):  # noise says nothing of them
        assert found[name].holds is None
        assert "drawn anew" in found[name].sentence


def test_what_is_remembered_is_noticed(batch):
    assert held(batch, GRPO())["memory"].holds
    found = held(batch, GRPO(), Fading())["memory"]
    assert found.holds is False
    assert "no `state` declares it" in found.sentence
    known = held(batch, GRPO(), Declared())["memory"]
    assert known.holds is None
    assert known.sentence.endswith("Declared keeps calls")
    gate = held(batch, GRPO(), ConstantLambda(0.5), CorrectnessGate())["memory"]
    assert gate.holds is None
    assert "CorrectnessGate keeps opened_at" in gate.sentence
    assert held(batch, GRPO(), Fading(), Declared())["memory"].holds is False  # not hidden by what another declares


def test_no_stack_is_no_error(batch):
    assert held(batch)["neutral value"].sentence == "no operator writes advantages"


def test_small_credit_is_held_to_the_same(batch):
    assert not held(batch, GRPO(), First(), Tiny())["order"].holds


def test_an_operator_is_checked_on_the_whole_batch(batch):
    assert held(batch, GRPO())["checked on"].sentence == "12 prompts x 4 completions"
    assert not held(batch, GRPO(), Crowded())["splitting"].holds


def test_no_credit_is_said(batch):
    assert held(batch, GRPO(), Nothing())["rewards"].sentence == "no credit is given, whatever the rewards"


def test_a_prompt_that_depends_on_others_is_noticed(batch):
    found = held(batch, GRPO(), Shared())
    assert found["order"].holds
    assert not found["splitting"].holds
    assert not found["verdicts"].holds
    assert found["rewards"].sentence.startswith("where all rewards double, credit stays")
    assert found["neutral value"].sentence == "Shared does nothing with power = 0"


def test_an_operator_that_fails_is_told_and_not_raised(batch):
    found = held(batch, GRPO(), Broken())
    assert found["order"].holds
    assert found["splitting"].holds is None
    assert "RuntimeError: too few" in found["splitting"].sentence


@pytest.mark.parametrize(("name", "value"), [("GTPO", "beta = 0"), ("HICRA", "alpha = 0"), ("RandomMask", "rho = 1")])
def test_neutral_values_are_found(batch, name, value):
    found = {each.name: each for each in check_stack_properties(batch(name))}
    assert found["neutral value"].holds
    assert value in found["neutral value"].sentence
