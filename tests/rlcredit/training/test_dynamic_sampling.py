"""Several rounds of prompts for one batch."""

import pytest
import torch
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from rlcredit.training.dynamic_sampling import DynamicSampling, informative_groups, sample_until_informative
from tests.callbacks.rollouts import episodes_of
from tests.conftest import make_rollout
from tests.spy import RolloutSpy


def judged(*groups, width=4):
    """A rollout of groups of two with these verdicts, each group's prompt named by its number."""
    return make_rollout([float(right) for group in groups for right in group], group_size=2, width=width)


def test_groups_that_teach_nothing_are_replaced_and_fill_what_is_missing():
    asked = [judged((1, 1), (0, 1)), judged((0, 0), (0, 0), width=7), judged((1, 0), (1, 0)), judged((1, 1), (1, 1))]
    drawn = iter(asked)
    rollout, counted = sample_until_informative(drawn, prompts=2)
    assert counted == {"sampling_rounds": 3, "informative_groups": 0.5}
    assert rollout.correct.tolist() == [0, 1, 1, 0]
    assert next(drawn) is asked[3]
    assert rollout.mask.shape == (4, 7)
    assert torch.equal(rollout.old_logprobs[:2, :4], asked[0].old_logprobs[2:])
    assert rollout.tokens[:2] == asked[0].tokens[2:]
    rollout, counted = sample_until_informative(iter(asked[:2]), prompts=2)
    assert rollout.correct.tolist() == [1, 1, 0, 1]  # as sampled: silent groups spread over the mini-batches
    assert counted == {"sampling_rounds": 2, "informative_groups": 0.25}


def test_episodes_are_replaced_whatever_turns_they_have():
    asked = [
        episodes_of(["aXb", "a", "aXbYc", "aXb"], [1.0, 1.0, 0.0, 1.0]),
        episodes_of(["aXbYcZd", "ab"] * 2, [0.0, 1.0, 1.0, 1.0]),
    ]
    rollout, counted = sample_until_informative(iter(asked), prompts=2)
    assert counted == {"sampling_rounds": 2, "informative_groups": 0.5}
    assert [rollout.list_texts(row) for row in range(4)] == [list("abc"), list("ab"), list("abcd"), list("ab")]
    assert rollout.turn_rewards.tolist() == [[1, 2, 3, 0], [1, 2, 0, 0], [1, 2, 3, 4], [1, 0, 0, 0]]
    assert rollout.turn[0].tolist() == [0, -1, 1, -1, 2, -1, -1]


def test_groups_without_any_verdict_fill_what_is_missing_last():
    rollout = judged((1, 1), (0, 1), (0, 0))
    rollout.judged = torch.tensor([False, False, True, True, True, True])
    chosen, _ = sample_until_informative(iter([rollout]), prompts=2)
    assert chosen.judged.all()
    assert chosen.correct.tolist() == [0, 1, 0, 0]


def test_dynamic_sampling_fills_batches_with_groups_that_teach(fit):
    spy = RolloutSpy()
    run = fit(steps=2, stack=[MaxRL(), spy], prompts=4, completions=4, dynamic_sampling=DynamicSampling(rounds=4))
    for rollout, metrics in zip(spy.seen, run.history):
        assert informative_groups(rollout).all()
        assert len(rollout.mask) == 16
        assert metrics["train/zero_variance"] == 0
        assert 1 <= metrics["train/sampling_rounds"] <= 4
        assert 4 / (4 * metrics["train/sampling_rounds"]) <= metrics["train/informative_groups"] <= 1
    plain = fit(steps=1, stack=[MaxRL(), RolloutSpy()], prompts=4, completions=4)
    assert plain.history[0]["train/zero_variance"] > 0


def test_one_round_of_dynamic_sampling_is_plain_sampling_with_the_groups_in_another_order(fit):
    plain, spy = RolloutSpy(), RolloutSpy()
    fit(steps=1, stack=[GRPO(), plain], prompts=4, completions=4)
    fit(steps=1, stack=[GRPO(), spy], prompts=4, completions=4, dynamic_sampling=DynamicSampling(rounds=1))
    one, two = plain.seen[0], spy.seen[0]
    assert_close(two.old_logprobs.sum(-1).sort().values, one.old_logprobs.sum(-1).sort().values, atol=0, rtol=0)


def test_more_rounds_than_prompts_are_refused(fit):
    with pytest.raises(ValueError, match="may ask 10 x 8 prompts a step, but there are 64"):
        fit(prompts=8, dynamic_sampling=DynamicSampling(rounds=10))
    with pytest.raises(ValueError, match="rounds >= 1"):
        DynamicSampling(rounds=0)


def test_real_rewards_decide_what_teaches():
    rollout = judged((1, 1), (0, 0), (1, 0))
    rollout.task_rewards = torch.tensor([1.5, 1.0, 0.3, 0.3, 2.0, 2.0])
    assert informative_groups(rollout).tolist() == [True, False, False]
    rollout.rewards = torch.zeros(6)
    assert informative_groups(rollout).tolist() == [True, False, False]
