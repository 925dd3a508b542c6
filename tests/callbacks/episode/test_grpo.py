import pytest
import torch
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO, grpo_advantages
from callbacks.probes.signal_stats import SignalStats
from tests.callbacks.rollouts import group
from tests.conftest import make_rollout


@pytest.mark.parametrize(("normalize_std", "correct", "wrong"), [(False, 0.75, -0.25), (True, 1.620182, -0.540061)])
def test_two_right_of_eight_under_grpo(normalize_std, correct, wrong):
    expected = torch.tensor([correct] * 2 + [wrong] * 6)
    assert_close(grpo_advantages(group(2, 8), 8, normalize_std), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("right", "correct", "wrong"),
    [(1, 0.9375, -0.0625), (2, 0.875, -0.125), (3, 0.8125, -0.1875), (8, 0.5, -0.5), (15, 0.0625, -0.9375)],
)
def test_golden_values_of_grpo_for_sixteen(right, correct, wrong):
    advantages = grpo_advantages(group(right, 16), 16)
    assert (advantages[0].item(), advantages[-1].item()) == pytest.approx((correct, wrong), abs=2e-5)


@pytest.mark.parametrize("normalize_std", [False, True])
def test_a_group_of_one_has_nothing_to_compare(normalize_std):
    assert_close(grpo_advantages(torch.tensor([1.0, 0.0]), 1, normalize_std), torch.zeros(2))


def test_every_token_of_a_completion_gets_its_advantage(rollout):
    assert GRPO().assign(rollout) == {"advantage_max": 0.5}
    assert_close(rollout.advantages[1], torch.full((6,), -0.5))
    assert_close(rollout.advantages[4:], torch.zeros(4, 6))


def test_all_equal_rewards_teach_nothing_and_stay_in_the_statistics():
    rollout = make_rollout([0.0] * 4 + [1.0] * 4)
    GRPO().assign(rollout)
    assert not rollout.credited_rows().any()
    assert SignalStats().assign(rollout)["execution_mean"] == rollout.signal[rollout.mask].mean()


REAL = torch.tensor([2.5, -1.0, 0.25, -0.75])
"""Four real rewards; their sum is 1 and their mean 0.25."""


def test_golden_values_of_grpo_for_real_rewards():
    # Less the mean: 2.5 - 0.25, -1 - 0.25, 0.25 - 0.25, -0.75 - 0.25. They sum to 2.25 - 1.25 + 0 - 1 = 0.
    expected = torch.tensor([2.25, -1.25, 0.0, -1.0])
    assert_close(grpo_advantages(REAL, 4), expected)
    # Again, as the mean distance from all four: for the first (0 + 3.5 + 2.25 + 3.25) / 4 = 9 / 4.
    assert_close((REAL[:, None] - REAL).mean(1), expected)


def test_golden_values_of_divided_grpo_for_real_rewards():
    # Squares 5.0625 + 1.5625 + 0 + 1 = 7.625; by 3 they are 2.541667, whose root is 1.594261.
    # Again, by sums: 6.25 + 1 + 0.0625 + 0.5625 = 7.875 less 4 * 0.25^2 = 0.25 is 7.625.
    expected = torch.tensor([2.25 / 1.594261, -1.25 / 1.594261, 0.0, -1 / 1.594261])
    assert_close(grpo_advantages(REAL, 4, normalize_std=True), expected, atol=1e-5, rtol=0)


def test_real_rewards_may_lie_anywhere():
    assert_close(grpo_advantages(REAL - 100, 4), grpo_advantages(REAL, 4), atol=1e-5, rtol=0)
    assert_close(grpo_advantages(-3 * REAL, 4), -3 * grpo_advantages(REAL, 4))
