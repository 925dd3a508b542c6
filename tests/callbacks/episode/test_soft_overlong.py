import pytest
import torch
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO, grpo_advantages
from callbacks.episode.soft_overlong import SoftOverlong, overlong_penalty
from rlcredit.credit.contract import StackError
from tests.callbacks.rollouts import numbers, rollout_of
from tests.spy import RolloutSpy


def test_shaped_rewards_reach_grpo_and_leave_the_verdicts_alone():
    rollout = rollout_of([1.0, 0.0], 2, [[0.1] * 10] * 2)
    rollout.mask = torch.arange(10) < torch.tensor([[10], [4]])
    metrics = numbers(SoftOverlong(factor=1.0, max_tokens=10, cache=5).assign(rollout))
    assert rollout.rewards.tolist() == [0.0, 0.0]
    assert rollout.correct.tolist() == [1.0, 0.0]
    assert metrics == {"penalized_fraction": 0.5, "penalty": -0.5}


def test_the_penalty_grows_from_the_cache_to_the_limit():
    lengths = torch.tensor([5.0, 6.0, 7.0, 9.0, 10.0, 12.0])
    assert overlong_penalty(lengths, max_tokens=10, cache=4).tolist() == [0, 0, -0.25, -0.75, -1, -1]


def test_the_limit_is_the_samplers_and_a_fifth_of_it_the_cache(fit):
    overlong = SoftOverlong()
    fit(steps=1, stack=[overlong, GRPO(), spy := RolloutSpy()], max_tokens=40)
    (rollout,) = spy.seen
    lengths = rollout.mask.sum(-1).float()
    assert overlong.limit == 40
    assert (lengths > 32).any()
    assert_close(rollout.rewards, rollout.correct - 0.5 * ((lengths - 32) / 8).clamp(0, 1))


def test_half_of_the_distance_between_right_and_wrong_is_what_dapo_takes():
    mask = torch.arange(10) < torch.tensor([[10], [10], [4], [4]])
    ours, theirs = (rollout_of([1.0, 0.0, 1.0, 0.0], 4, [[0.1] * 10] * 4) for _ in range(2))
    ours.mask = theirs.mask = mask
    theirs.rewards = 2 * theirs.correct - 1
    SoftOverlong(max_tokens=10).assign(ours)
    SoftOverlong(factor=1.0, max_tokens=10).assign(theirs)
    standardised = [grpo_advantages(rollout.rewards, 4, normalize_std=True) for rollout in (ours, theirs)]
    assert_close(*standardised, atol=1e-5, rtol=0)


def test_a_cache_beyond_the_limit_and_no_limit_at_all_are_refused(fit):
    with pytest.raises(ValueError, match=r"factor >= 0 and 0 < cache <= max_tokens, got 0.5, 5 and 4"):
        SoftOverlong(max_tokens=4, cache=5)
    with pytest.raises(ValueError, match=r"0 < cache <= max_tokens, got 0.5, 50 and 40"):
        fit(steps=1, stack=[SoftOverlong(cache=50), GRPO()], max_tokens=40)
    with pytest.raises(StackError, match=r"no limit outside a trainer\. Pass max_tokens"):
        SoftOverlong().assign(rollout_of([1.0, 0.0], 2, [[0.1] * 10] * 2))
