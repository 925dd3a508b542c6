import itertools
import math

import pytest
import torch
from torch.testing import assert_close

from callbacks.dense.prefix_baseline import PrefixBaseline, prefix_baseline_advantages
from callbacks.episode.rloo import RLOO
from rlcredit.formulas.prefixes import companion_sums
from tests.callbacks.rollouts import FORKED, TabularPolicy, numbers, rollout_of_ids
from tests.conftest import make_rollout


def test_the_worked_example_without_shrinkage():
    rollout = rollout_of_ids(*FORKED)
    metrics = PrefixBaseline(shrink=0.0).assign(rollout)
    third = 1 / 3
    expected = [[1, 1, 1], [-third, -0.5, -1], [-third, -0.5, -third], [-third, -third, -third]]
    assert_close(rollout.advantages, torch.tensor(expected))  # the second's last token: its one companion was right
    assert numbers(metrics)["shared_fraction"] == pytest.approx(9 / 12)


def test_shrinkage_moves_a_lone_companion_towards_all_others():
    rollout = rollout_of_ids(*FORKED)
    PrefixBaseline(shrink=2.0).assign(rollout)
    assert rollout.advantages[1, 2].item() == pytest.approx(-(1 + 2 / 3) / 3)


def test_infinite_shrinkage_is_rloo():
    ours, theirs = make_rollout(), make_rollout()
    ours.completion_ids = ours.completion_ids % 2
    assert numbers(PrefixBaseline(shrink=math.inf).assign(ours))["baseline_shift"] == 0
    RLOO().assign(theirs)
    assert torch.equal(ours.advantages[ours.mask], theirs.advantages[ours.mask])


def test_groups_of_equal_rewards_get_nothing_even_where_thirds_are_summed():
    rollout = make_rollout([1 / 3] * 8)
    rollout.completion_ids = rollout.completion_ids % 2
    PrefixBaseline(shrink=0.0).assign(rollout)
    assert not rollout.advantages.any()


def test_the_expected_gradient_is_that_of_the_expected_reward():
    policy = TabularPolicy(words=2, seed=1)
    answers = list(itertools.product(range(2), repeat=3))
    reward = {answer: float(sum(answer) == 2) + 0.5 * answer[0] for answer in answers}
    logprobs = {answer: policy.logprobs(answer) for answer in answers}
    true = policy.gradient(sum(reward[answer] * logprobs[answer].sum().exp() for answer in answers))
    expected = torch.zeros_like(true)
    for group in itertools.product(answers, repeat=3):
        ids, rewards = torch.tensor(group), torch.tensor([reward[answer] for answer in group]).double()
        whole = torch.ones_like(ids, dtype=torch.bool)
        counts, sums = companion_sums(rewards, whole[:, 0], ids, whole, group_size=3)
        advantages = prefix_baseline_advantages(rewards, counts, sums, whole, group_size=3, shrink=0.5)
        chance = math.exp(sum(logprobs[answer].sum().item() for answer in group))
        surrogate = sum((logprobs[answer] * row).sum() for answer, row in zip(group, advantages, strict=True))
        expected += chance * policy.gradient(surrogate) / 3
    assert_close(expected, true)


def test_a_negative_shrinkage_is_refused():
    with pytest.raises(ValueError, match=r"PrefixBaseline expects shrink >= 0, got -1. It is a number of completions"):
        PrefixBaseline(shrink=-1)
