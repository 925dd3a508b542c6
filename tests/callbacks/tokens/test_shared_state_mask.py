import pytest
import torch

from callbacks.tokens.shared_state_mask import SharedStateMask
from rlcredit.credit.stack_checks import explain_idle_operators
from tests.callbacks.rollouts import FORKED, numbers, rollout_of_ids


def test_credit_stays_where_another_completion_has_the_same_prefix():
    rollout = rollout_of_ids(*FORKED)
    rollout.advantages = torch.ones(4, 3)
    metrics = SharedStateMask().assign(rollout)
    assert rollout.advantages.tolist() == [[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 0, 0]]
    assert numbers(metrics) == {"shared_fraction": 9 / 12}


def test_a_completion_without_a_verdict_is_nobodys_companion():
    rollout = rollout_of_ids(*FORKED)
    rollout.judged = torch.tensor([True, False, True, True])
    rollout.advantages = torch.ones(4, 3)
    SharedStateMask().assign(rollout)
    assert rollout.advantages[0].tolist() == [1, 1, 0]


def test_padding_is_no_token_although_its_id_is_one():
    rollout = rollout_of_ids([1.0, 0.0], [[1], [1, 7, 7]])  # the first is padded with 7
    rollout.advantages = torch.ones(2, 3)
    metrics = SharedStateMask().assign(rollout)
    assert rollout.advantages[1].tolist() == [1, 1, 0]
    assert numbers(metrics)["shared_fraction"] == pytest.approx(3 / 4)


def test_in_a_group_of_one_it_says_that_nothing_is_shared():
    assert "gives no credit to groups of 1" in explain_idle_operators([SharedStateMask()], 1)[0]
