import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from callbacks.episode.batch_normalization import BatchNormalization
from callbacks.episode.grpo import GRPO, grpo_advantages
from callbacks.episode.maxrl import MaxRL, maxrl_advantages
from callbacks.episode.pass_at_k import PassAtK, pass_at_k_advantages
from callbacks.episode.rloo import RLOO, rloo_advantages
from tests.conftest import make_rollout


def group(right, size):
    return torch.tensor([1.0] * right + [0.0] * (size - right))


def two(advantages, right):
    """The advantage of a right and of a wrong completion."""
    return pytest.approx((advantages[0].item(), advantages[-1].item()), abs=2e-5) if right else None


@pytest.mark.parametrize(
    ("advantages", "correct", "wrong"),
    [
        (lambda r: grpo_advantages(r, 8), 0.75, -0.25),
        (lambda r: grpo_advantages(r, 8, normalize_std=True), 1.620182, -0.540061),
        (lambda r: rloo_advantages(r, 8), 0.857143, -0.285714),
        (lambda r: maxrl_advantages(r, 8), 2.999988, -0.999996),
        (lambda r: pass_at_k_advantages(r, 8, 4), 0.522232, -0.174077),
        (lambda r: pass_at_k_advantages(r, 8, 1), 1.732047, -0.577349),  # GRPO with the population deviation
    ],
)
def test_two_right_of_eight(advantages, correct, wrong):
    values = advantages(group(2, 8))
    assert_close(values[:2], torch.full((2,), correct), atol=1e-5, rtol=0)
    assert_close(values[2:], torch.full((6,), wrong), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("right", "grpo", "maxrl"),
    [
        (1, (0.9375, -0.0625), (14.99976, -0.99998)),
        (2, (0.875, -0.125), (6.99994, -0.99999)),
        (3, (0.8125, -0.1875), (4.33331, -0.99999)),
        (8, (0.5, -0.5), (1.0, -1.0)),
        (15, (0.0625, -0.9375), (0.06667, -1.0)),
    ],
)
def test_golden_values_for_sixteen(right, grpo, maxrl):
    rewards = group(right, 16)
    assert two(grpo_advantages(rewards, 16), right) == grpo
    assert two(maxrl_advantages(rewards, 16), right) == maxrl


@pytest.mark.parametrize("right", [0, 16])
@pytest.mark.parametrize("advantages", [grpo_advantages, maxrl_advantages, rloo_advantages])
def test_groups_of_equal_rewards_teach_nothing(advantages, right):
    assert_close(advantages(group(right, 16), 16), torch.zeros(16))


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


@pytest.mark.parametrize("normalize_std", [False, True])
def test_a_group_of_one_has_nothing_to_compare(normalize_std):
    assert_close(grpo_advantages(torch.tensor([1.0, 0.0]), 1, normalize_std), torch.zeros(2))
    with pytest.raises(ValueError, match="group_size >= 2"):
        rloo_advantages(torch.tensor([1.0]), 1)


def test_every_token_of_a_completion_gets_its_advantage(rollout):
    assert GRPO().assign(rollout) == {"advantage_max": 0.5}
    assert_close(rollout.advantages[1], torch.full((6,), -0.5))
    assert_close(rollout.advantages[4:], torch.zeros(4, 6))


def test_an_epsilon_of_nothing_is_refused():
    with pytest.raises(ValueError, match="eps > 0, got 0"):
        MaxRL(eps=0)


def binomial_pass_at_k(rewards, k):
    """Pass@k training from its binomials, one group."""
    size, wrong = len(rewards), rewards.count(0.0)
    fail = math.comb(wrong, k) / math.comb(size, k)
    scale = math.sqrt(fail * (1 - fail)) + 1e-6
    others = math.comb(wrong - 1, k - 1) / math.comb(size - 1, k - 1) if wrong else 0.0
    return [(fail if reward else fail - others) / scale for reward in rewards]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("right", range(7))
def test_pass_at_k_is_what_its_binomials_say(right, k):
    rewards = [1.0] * right + [0.0] * (6 - right)
    assert_close(pass_at_k_advantages(torch.tensor(rewards), 6, k), torch.tensor(binomial_pass_at_k(rewards, k)))


def test_pass_at_k_needs_k_completions_and_more_to_compare(capsys):
    for k in (0, 5):
        with pytest.raises(ValueError, match=f"1 <= k <= 4 completions, got {k}. Set model.sampling.completions"):
            pass_at_k_advantages(torch.zeros(4), 4, k)
    assert PassAtK(k=4).notice(1.0, 4) == "PassAtK(k=4) gives no credit to groups of 4. Lower k."
    assert PassAtK(k=4).notice(1.0, 8) is None


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


@pytest.mark.parametrize("operator", [GRPO(), GRPO(normalize_std=True), MaxRL(), RLOO(), PassAtK(k=3), PassAtK(k=8)])
def test_no_mixture_of_judged_and_not_judged_passes_the_bound(operator):
    for judged in range(1, 9):
        for right in range(judged + 1):
            verdicts = torch.tensor([1.0] * right + [0.0] * (judged - right))
            rollout = make_rollout(torch.cat([verdicts, verdicts.mean().expand(8 - judged)]).tolist(), group_size=8)
            operator.assign(rollout)
            assert rollout.advantages.abs().max() <= operator.bound(1.0, 8) + 1e-5


def test_batch_normalization_leaves_out_equal_rewards_where_asked():
    rollout = make_rollout([1.0, 0.0, 0.0, 1.0] + [0.0] * 4)
    GRPO().assign(rollout)
    rollout.advantages = rollout.advantages + 0.25
    counted = BatchNormalization(zero_variance="exclude").assign(rollout)["counted_fraction"]
    assert counted == rollout.mask[:4].sum() / rollout.mask.sum()
    kept = rollout.advantages[:4][rollout.mask[:4]]
    assert_close(kept.mean(), torch.tensor(0.0), atol=1e-6, rtol=0)
    assert_close(kept.std(correction=0), torch.tensor(1.0))
    assert (rollout.advantages[4:] == 0.25).all()
    with pytest.raises(ValueError, match="zero_variance to be one of include, exclude, got 'excluded'"):
        BatchNormalization(zero_variance="excluded")
