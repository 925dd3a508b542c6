"""What the advantages of every group baseline have in common."""

import copy
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from callbacks.dense.prefix_baseline import PrefixBaseline
from callbacks.dense.tempo import TEMPO
from callbacks.episode.grpo import GRPO, grpo_advantages
from callbacks.episode.maxrl import MaxRL, maxrl_advantages
from callbacks.episode.opo import OPO
from callbacks.episode.pass_at_k import PassAtK, pass_at_k_advantages
from callbacks.episode.rloo import RLOO, rloo_advantages
from callbacks.episode.tracked_baseline import TrackedBaseline
from tests.callbacks.rollouts import group
from tests.conftest import make_rollout


@pytest.mark.parametrize("right", [0, 16])
@pytest.mark.parametrize("advantages", [grpo_advantages, maxrl_advantages, rloo_advantages])
def test_groups_of_equal_rewards_teach_nothing(advantages, right):
    assert_close(advantages(group(right, 16), 16), torch.zeros(16))


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 6), st.integers(1, 5), st.data())
def test_advantages_sum_to_zero_in_every_group_and_keep_its_order(size, groups, data):
    verdicts = st.lists(st.sampled_from([0.0, 1.0]), min_size=size * groups, max_size=size * groups)
    rewards = torch.tensor(data.draw(verdicts))
    for advantages in (grpo_advantages, rloo_advantages, maxrl_advantages):
        values = advantages(rewards, size).view(groups, size)
        assert_close(values.sum(-1), torch.zeros(groups), atol=1e-4, rtol=0)
        assert (values[rewards.view(groups, size) == 1] >= 0).all()
    assert_close(grpo_advantages(rewards, size), (size - 1) / size * rloo_advantages(rewards, size))
    assert (grpo_advantages(rewards, size).abs() <= (size - 1) / size + 1e-6).all()


ESTIMATORS = {
    "grpo": grpo_advantages,
    "grpo_std": partial(grpo_advantages, normalize_std=True),
    "rloo": rloo_advantages,
    "maxrl": maxrl_advantages,
    "pass_at_k": partial(pass_at_k_advantages, k=3),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("size", [8, 16])
def test_what_was_not_judged_has_exactly_no_credit(name, size):
    for judged in range(1, size):
        for right in range(judged + 1):
            verdicts = torch.tensor([1.0] * right + [0.0] * (judged - right))
            rewards = torch.cat([verdicts, verdicts.mean().expand(size - judged)])
            advantages = ESTIMATORS[name](rewards, size)
            assert not advantages[judged:].any()
            if 0 < right < judged and name != "pass_at_k":
                assert advantages[:judged].all()


BOUNDED = [
    *(GRPO(), GRPO(normalize_std=True), MaxRL(), RLOO(), PassAtK(k=3), PassAtK(k=8)),
    *(OPO(), TrackedBaseline(), TEMPO(), PrefixBaseline(shrink=0.0)),
]


@pytest.mark.parametrize("operator", BOUNDED)
def test_no_mixture_of_judged_and_not_judged_passes_the_bound(operator):
    for judged in range(1, 9):
        for right in range(judged + 1):
            verdicts = torch.tensor([1.0] * right + [0.0] * (judged - right))
            rollout = make_rollout(torch.cat([verdicts, verdicts.mean().expand(8 - judged)]).tolist(), group_size=8)
            rollout.completion_ids = rollout.completion_ids % 3
            copy.deepcopy(operator).assign(rollout)
            assert rollout.advantages.abs().max() <= operator.bound(1.0, 8) + 1e-5


@pytest.mark.parametrize("estimator", [GRPO(), GRPO(normalize_std=True), MaxRL(), RLOO(), PassAtK(k=4)])
def test_the_bound_is_reached_and_never_passed(estimator):
    rewards = torch.tensor([[1.0] * right + [0.0] * (8 - right) for right in range(9)])
    rollout = make_rollout(rewards.flatten().tolist(), group_size=8)
    estimator.assign(rollout)
    assert rollout.advantages.abs().max().item() == pytest.approx(estimator.bound(1.0, 8), rel=1e-4)
