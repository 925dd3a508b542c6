import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from callbacks.episode.grpo import grpo_advantages
from callbacks.episode.opo import OPO, length_weighted_baselines, opo_advantages
from tests.callbacks.rollouts import numbers, rollout_of_ids


def test_the_worked_example():
    rewards, lengths = torch.tensor([1.0, 0.0, 1.0]), torch.tensor([100, 200, 50])
    assert length_weighted_baselines(rewards, lengths, 3).item() == pytest.approx(150 / 350)  # .429 beside .667
    assert opo_advantages(rewards, lengths, 3).tolist() == pytest.approx([4 / 7, -3 / 7, 4 / 7])


@given(st.lists(st.tuples(st.sampled_from([0.0, 1 / 3, 1.0]), st.integers(1, 99)), min_size=2, max_size=8))
def test_weighted_by_the_lengths_advantages_sum_to_zero(answers):
    rewards, lengths = (torch.tensor(column) for column in zip(*answers, strict=True))
    advantages = opo_advantages(rewards.double(), lengths, len(answers))
    assert (advantages * lengths).sum().abs() < 1e-4


@given(st.lists(st.sampled_from([0.0, 1 / 3, 1.0]), min_size=2, max_size=8), st.integers(1, 99))
def test_with_equal_lengths_it_is_grpo(verdicts, length):
    rewards = torch.tensor(verdicts)
    ours = opo_advantages(rewards, torch.full((len(verdicts),), length), len(verdicts))
    torch.testing.assert_close(ours, grpo_advantages(rewards, len(verdicts)))


def test_every_token_gets_its_completions_advantage_and_the_shift_of_the_baseline_is_logged():
    rollout = rollout_of_ids([1.0, 0.0], [[1, 2, 3], [4]])
    metrics = numbers(OPO().assign(rollout))
    assert rollout.advantages.tolist() == [[0.25] * 3, [-0.75] * 3]
    assert metrics == {"advantage_max": 0.75, "baseline_shift": 0.25}
