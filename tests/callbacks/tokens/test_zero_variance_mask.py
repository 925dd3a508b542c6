import torch

from callbacks.tokens.zero_variance_mask import ZeroVarianceMask
from rlcredit.credit.alternatives import WeightedTokens
from rlcredit.credit.stack_checks import explain_idle_operators
from tests.callbacks.rollouts import numbers
from tests.conftest import make_rollout


def test_groups_of_equal_rewards_lose_the_credit_of_all_their_tokens():
    rollout = make_rollout([1.0, 1.0, 0.0, 1.0, 0.0, 0.0], 2, width=2)
    rollout.advantages = torch.ones(6, 2)
    rows = torch.arange(6)
    rollout.alternatives = WeightedTokens(rows, 0 * rows, rows, -torch.ones(6), torch.ones(6))
    metrics = ZeroVarianceMask().assign(rollout)
    assert rollout.advantages[:, 0].tolist() == [0, 0, 1, 1, 0, 0]
    assert rollout.alternatives.rows.tolist() == [2, 3]
    assert rollout.alternatives.tokens.tolist() == [2, 3]
    assert numbers(metrics)["mixed_fraction"] == torch.tensor(1 / 3)


def test_a_completion_without_a_verdict_makes_no_group_mixed():
    rollout = make_rollout([1.0, 0.0, 1.0, 0.0], 2, width=2)
    rollout.judged = torch.tensor([True, False, True, True])
    rollout.advantages = torch.ones(4, 2)
    ZeroVarianceMask().assign(rollout)
    assert rollout.advantages[:, 0].tolist() == [0, 0, 1, 1]
    assert rollout.alternatives is None


def test_shaped_rewards_may_differ_where_verdicts_do_not():
    rollout = make_rollout([1.0, 1.0], 2, width=2)
    rollout.rewards = torch.tensor([1.0, 0.8])
    rollout.advantages = torch.ones(2, 2)
    ZeroVarianceMask().assign(rollout)
    assert rollout.advantages.all()


def test_in_a_group_of_one_it_says_that_nothing_is_left():
    assert "gives no credit to groups of 1" in explain_idle_operators([ZeroVarianceMask()], 1)[0]
