import pytest
import torch
from torch.testing import assert_close

from callbacks.dense.tempo import TEMPO, tempo_advantages
from callbacks.episode.grpo import GRPO
from rlcredit.formulas.prefixes import companion_sums, prefix_values
from tests.callbacks.rollouts import FORKED, TabularPolicy, numbers, rollout_of_ids
from tests.conftest import make_rollout


def values_of(rollout):
    facts = (rollout.correct, rollout.judged, rollout.completion_ids, rollout.mask, rollout.group_size)
    return prefix_values(rollout.correct, *companion_sums(*facts), rollout.mask)


def test_the_worked_example():
    rollout = rollout_of_ids(*FORKED)
    third = 1 / 3
    values = [[0.25, third, 0.5, 1], [0.25, third, 0.5, 0], [0.25, third, 0, 0], [0.25, 0, 0, 0]]
    assert_close(values_of(rollout), torch.tensor(values, dtype=torch.float64))
    metrics = TEMPO().assign(rollout)
    raised = [[5 / 6, 11 / 12, 1.25], [-1 / 6, -1 / 12, -0.75], [-1 / 6, -7 / 12, -0.25], [-0.5, -0.25, -0.25]]
    assert_close(rollout.advantages, torch.tensor(raised) / 0.5, atol=1e-5, rtol=1e-5)  # unbiased deviation: 1/2
    assert numbers(metrics) == pytest.approx({"shared_fraction": 9 / 12, "changed_fraction": 9 / 12})


def test_it_is_grpo_where_the_value_does_not_change():
    tempo, grpo = (make_rollout([1.0, 0.0, 1 / 3, 1 / 3] * 2) for _ in range(2))
    TEMPO().assign(tempo)
    GRPO(normalize_std=True).assign(grpo)
    later = tempo.mask & (torch.arange(6) > 0)  # random ids: who has drawn the first token is alone
    assert torch.equal(tempo.advantages[later], grpo.advantages[later])
    assert not torch.equal(tempo.advantages[:, 0], grpo.advantages[:, 0])


def drawn_group(policy, size, length, seed):
    """Ids of completions drawn from a policy, and a reward of each."""
    generator = torch.Generator().manual_seed(seed)
    ids = []
    for _ in range(size):
        tokens = []
        for _ in range(length):
            probability = policy.logits(tuple(tokens)).detach().softmax(-1)
            tokens.append(int(torch.multinomial(probability, 1, generator=generator)))
        ids.append(tokens)
    return ids, torch.randint(0, 2, (size,), generator=generator).double()


@pytest.mark.parametrize("seed", range(5))
def test_the_difference_has_the_gradient_of_reward_minus_value(seed):
    policy = TabularPolicy(words=3, seed=seed)
    ids, rewards = drawn_group(policy, size=8, length=4, seed=seed)
    whole = torch.ones(8, 4, dtype=torch.bool)
    counts, sums = companion_sums(rewards, whole[:, 0], torch.tensor(ids), whole, group_size=8)
    values = prefix_values(rewards, counts, sums, whole)
    logprobs = torch.stack([policy.logprobs(row) for row in ids])
    difference = policy.gradient((values.diff(dim=-1) * logprobs).sum())
    remainder = rewards[:, None] - values[:, :-1]
    assert_close(difference, policy.gradient((remainder * logprobs).sum()))
    assert not remainder[counts[:, :-1] == 0].any()  # a lone suffix is masked
    assert difference.abs().max() > 0.1
    both = tempo_advantages(rewards, values, whole, group_size=8) * (rewards.std() + 1e-6)
    flat = policy.gradient(((rewards - rewards.mean())[:, None] * logprobs).sum())
    assert_close(policy.gradient((both * logprobs).sum()), flat + difference)


def test_groups_of_equal_rewards_get_nothing():
    rollout = make_rollout([1 / 3] * 8)
    rollout.completion_ids = rollout.completion_ids % 2
    TEMPO().assign(rollout)
    assert not rollout.advantages.any()


def test_the_bound_is_reached_by_the_only_right_answer_with_a_first_token_of_its_own():
    rollout = rollout_of_ids([1.0] + [0.0] * 7, [[1, 2], *[[3, 2]] * 7])
    TEMPO().assign(rollout)
    assert rollout.advantages.max().item() == pytest.approx(TEMPO().bound(1.0, 8), rel=1e-4)
