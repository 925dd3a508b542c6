import pytest
import torch
from torch.testing import assert_close

from callbacks.episode.grpo import grpo_advantages
from callbacks.episode.maxrl import MaxRL, maxrl_advantages
from rlcredit.training.metrics import sampling_metrics
from tests.callbacks.rollouts import group
from tests.conftest import make_rollout


def test_two_right_of_eight_under_maxrl():
    expected = torch.tensor([2.999988] * 2 + [-0.999996] * 6)
    assert_close(maxrl_advantages(group(2, 8), 8), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("right", "correct", "wrong"),
    [(1, 14.99976, -0.99998), (2, 6.99994, -0.99999), (3, 4.33331, -0.99999), (8, 1.0, -1.0), (15, 0.06667, -1.0)],
)
def test_golden_values_of_maxrl_for_sixteen(right, correct, wrong):
    advantages = maxrl_advantages(group(right, 16), 16)
    assert (advantages[0].item(), advantages[-1].item()) == pytest.approx((correct, wrong), abs=2e-5)


def test_maxrl_is_silent_where_its_theory_is():
    assert_close(maxrl_advantages(torch.tensor([-1.0, -0.5, 0.2]), 3), torch.zeros(3))


def test_maxrl_turns_the_update_where_prompts_differ():
    # One group: a multiple of GRPO. Several groups: another direction, because each has its own factor.
    rewards = torch.cat([group(1, 8), group(4, 8)])
    grpo, maxrl = grpo_advantages(rewards, 8), maxrl_advantages(rewards, 8)
    ratios = (maxrl / grpo).view(2, 8)
    assert_close(ratios[0], torch.full((8,), 8.0), atol=1e-3, rtol=0)
    assert_close(ratios[1], torch.full((8,), 2.0), atol=1e-3, rtol=0)
    assert torch.cosine_similarity(grpo, maxrl, dim=0) < 0.96


def test_an_epsilon_of_nothing_is_refused():
    with pytest.raises(ValueError, match="eps > 0, got 0"):
        MaxRL(eps=0)


def test_zero_success_group_is_zero_under_maxrl_and_counted():
    rollout = make_rollout([0.0] * 4 + [1.0] * 4)
    MaxRL().assign(rollout)
    assert not rollout.advantages.any()
    metrics = sampling_metrics(rollout)
    assert metrics["train/zero_variance_all_wrong"] == metrics["train/zero_variance_all_right"] == 0.5
