from dataclasses import fields

import torch
from torch.testing import assert_close

from rlcredit.rollout import FACTS, FIELDS, MEANINGFUL, NEUTRAL, NOTES, Rollout


def test_the_empty_stack_is_reinforce(rollout):
    assert_close(rollout.advantages, rollout.rewards[:, None].expand(8, 6))
    assert_close(rollout.signal, -rollout.old_logprobs)
    assert not rollout.plan_mask.any()
    assert rollout.sepa_lambda == 0
    assert rollout.logprobs is rollout.old_logprobs


def test_every_field_is_either_a_fact_or_in_the_ledger():
    assert {field.name for field in fields(Rollout)} == FIELDS | NOTES
    assert FACTS.isdisjoint(NEUTRAL)
    assert MEANINGFUL < FIELDS


def test_a_ledger_is_its_own(rollout):
    rollout.advantages = torch.zeros(8, 6)
    assert rollout.rewards.sum() == 2
