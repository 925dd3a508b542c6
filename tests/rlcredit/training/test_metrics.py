import math

import pytest
import torch

from rlcredit.training.metrics import episode_metrics, policy_metrics, sampling_metrics
from tests.conftest import make_rollout


def test_surprisal_statistics_are_of_all_groups_weighted_by_tokens():
    for rewards in ([0.0] * 4 + [1.0] * 4, [1.0, 0.0] * 4):
        rollout = make_rollout(rewards)
        assert sampling_metrics(rollout)["train/surprisal"] == rollout.signal[rollout.mask].mean()


def test_the_reward_is_that_of_the_judged_and_a_ratio_beyond_float32_is_a_number():
    rollout = make_rollout([1.0, 0.0, 0.0, 0.0], group_size=2)
    rollout.judged = torch.tensor([True, True, False, False])
    assert sampling_metrics(rollout)["train/reward"] == 0.5
    rollout.logprobs = rollout.old_logprobs + 95.0
    compared = policy_metrics(rollout, rollout.judged)
    assert compared["train/ratio_max"].item() == pytest.approx(math.exp(80), rel=1e-5)
    assert compared["train/kl_sampler"].item() == pytest.approx(math.exp(20) - 21, rel=1e-6)


def test_groups_without_variance_are_those_of_equal_rewards():
    rollout = make_rollout([1.0, 1.0, 0.0, 0.0, 1.0, 0.0], group_size=2)
    assert sampling_metrics(rollout)["train/zero_variance"] == pytest.approx(2 / 3)
    rollout.task_rewards = torch.tensor([1.5, 1.0, 0.3, 0.3, 2.0, 2.0])
    metrics = sampling_metrics(rollout)
    assert metrics["train/zero_variance"] == pytest.approx(2 / 3)
    assert metrics["train/zero_variance_all_right"] == pytest.approx(1 / 3)
    assert metrics["train/reward"] == pytest.approx(7.1 / 6)
    rollout.judged = torch.tensor([True, True, False, False, True, False])
    assert sampling_metrics(rollout)["train/zero_variance"] == pytest.approx(1 / 3)


def test_episodes_are_counted_in_turns_and_in_tokens_that_are_read_between_them():
    rollout = make_rollout((1.0, 0.0), group_size=2, width=6)
    rollout.mask = torch.tensor([[1, 1, 0, 0, 1, 1], [1, 1, 1, 0, 0, 0]]).bool()
    rollout.turn = torch.tensor([[0, 0, -1, -1, 1, 1], [0, 0, 0, -1, -1, -1]])
    metrics = episode_metrics(rollout)
    assert {name: value.item() for name, value in metrics.items()} == {
        "train/turns": 1.5,
        "train/observation_tokens": 1.0,
    }
