import copy
import math

import pytest
import torch
from torch.testing import assert_close

from callbacks.critics.adapter_critic import AdapterCritic
from rlcredit.formulas.reward_histogram import RewardHistogram
from tests.conftest import make_rollout
from tests.rlcredit.training.sampled_rollouts import sample_rollout

EARLIER, AT_HAND = make_rollout(seed=1), make_rollout(seed=2)
FRESH_HEAD = math.log(2)
"""Cross-entropy of a head that predicts right and wrong alike."""


def taught(rollouts=1, **arguments):
    """Return a critic that has warmed up with the earlier rollout."""
    critic = AdapterCritic(**{"rate": 0.05, "warmup": rollouts, **arguments})
    for _ in range(rollouts):
        critic.assign(EARLIER.copy_with_neutral_ledger())
    return critic


def known_states(rollout):
    """Return the states that predict the tokens of a rollout under no adapter."""
    before = torch.cat([torch.zeros(8, 1), rollout.completion_ids[:, :-1]], 1)
    return (before[..., None] * torch.tensor([1.0, 2.0, 3.0, 4.0])).sin()


def test_while_it_warms_up_it_only_learns():
    critic = AdapterCritic(warmup=2)
    for step in range(2):
        rollout = EARLIER.copy_with_neutral_ledger()
        before = rollout.values
        metrics = critic.assign(rollout)
        assert rollout.values is before
        assert rollout.critic_weight == 0.0
        assert metrics.keys() == {"loss"}
        assert (metrics["loss"].item() == pytest.approx(FRESH_HEAD)) == (step == 0)
    rollout = AT_HAND.copy_with_neutral_ledger()
    metrics = critic.assign(rollout)
    assert rollout.critic_weight == 1.0
    assert metrics.keys() == {"loss", "brier", "brier_group", "skill", "calibration"}


def test_a_value_is_how_likely_the_head_says_right():
    critic, rollout = taught(), AT_HAND.copy_with_neutral_ledger()
    (first, second), (head, bias) = critic.adapter["factors"], critic.adapter["others"]
    critic.assign(rollout)
    states = known_states(rollout)
    logits = (states + states @ first @ second) @ head + bias
    expected = (logits[..., 1] - logits[..., 0]).sigmoid().where(rollout.mask, 0)
    assert_close(rollout.values, expected)
    assert (rollout.values[rollout.mask] - 0.5).abs().max() > 0.01


def test_a_value_of_many_bins_is_the_mean_of_its_histogram():
    target = RewardHistogram(3)
    critic, rollout = taught(target=target), AT_HAND.copy_with_neutral_ledger()
    (first, second), (head, bias) = critic.adapter["factors"], critic.adapter["others"]
    critic.assign(rollout)
    states = known_states(rollout)
    shares = ((states + states @ first @ second) @ head + bias).softmax(-1)
    assert_close(rollout.values, (0.5 * shares[..., 1] + shares[..., 2]).where(rollout.mask, 0))


def test_it_judges_a_rollout_before_it_learns_from_it():
    critic, values = taught(), []
    for rewards in (AT_HAND.correct, 1 - AT_HAND.correct):
        rollout = AT_HAND.copy_with_neutral_ledger()
        rollout.rewards = rewards
        judging = copy.deepcopy(critic)
        judging.assign(rollout)
        values.append((rollout.values, judging.adapter["factors"][1]))
    assert torch.equal(values[0][0], values[1][0])
    assert not torch.equal(values[0][1], values[1][1])


def test_it_takes_a_step_of_adamw_on_the_cross_entropy_of_what_was_judged():
    critic, rollout = taught(), AT_HAND.copy_with_neutral_ledger()
    rollout.judged = torch.arange(8) != 3
    rollout.returns = torch.linspace(0, 1, 48).view(8, 6)
    adapter = copy.deepcopy(critic.adapter)
    weights = [torch.nn.Parameter(weight) for weight in (*adapter["factors"], *adapter["others"])]
    optimizer = torch.optim.AdamW(weights, lr=0.05, weight_decay=0.0)
    optimizer.load_state_dict(adapter["moments"])
    metrics = critic.assign(rollout)
    states = known_states(rollout)
    first, second, head, bias = weights
    log_p = ((states + states @ first @ second) @ head + bias).log_softmax(-1)
    entropies = -(rollout.returns * log_p[..., 1] + (1 - rollout.returns) * log_p[..., 0])
    loss = entropies[rollout.mask & rollout.judged[:, None]].mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    optimizer.step()
    assert_close(metrics["loss"], loss.detach())
    for found, expected in zip([*critic.adapter["factors"], *critic.adapter["others"]], weights, strict=True):
        assert_close(found, expected.detach())


def test_rounds_are_steps_on_the_same_rollout():
    one, three = taught(rollouts=3), taught(rounds=3)
    for name in ("factors", "others"):
        for found, expected in zip(one.adapter[name], three.adapter[name], strict=True):
            assert torch.equal(found, expected)
    assert (one.fitted, three.fitted) == (3, 1)


def test_on_a_real_policy_it_learns_which_completions_are_right(policy):
    critic, losses, sampled = AdapterCritic(rate=1e-2, warmup=1), [], sample_rollout(policy)
    for _ in range(12):
        rollout = sampled.copy_with_neutral_ledger()
        rollout.rewards = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
        losses.append(critic.assign(rollout)["loss"].item())
    assert losses[0] == pytest.approx(FRESH_HEAD)
    assert losses[-1] < 0.5 * losses[0]
    assert rollout.values[3, 7] < 0.3 < 0.7 < rollout.values[0, 4]
    assert not rollout.values[~rollout.mask].any()


def test_without_any_verdict_it_learns_nothing():
    critic = taught()
    before = copy.deepcopy(critic.adapter)
    rollout = AT_HAND.copy_with_neutral_ledger()
    rollout.judged = torch.zeros(8, dtype=torch.bool)
    assert "loss" not in critic.assign(rollout)
    assert critic.fitted == 1
    for found, expected in zip(critic.adapter["factors"], before["factors"], strict=True):
        assert torch.equal(found, expected)


def test_what_it_has_learned_is_its_state():
    critic, restored = taught(), AdapterCritic(rate=0.05, warmup=1)
    restored.load_state_dict(copy.deepcopy(critic.state_dict()))
    values = []
    for judging in (critic, restored):
        for _ in range(2):
            rollout = AT_HAND.copy_with_neutral_ledger()
            judging.assign(rollout)
        values.append(rollout.values)
    assert torch.equal(*values)


@pytest.mark.parametrize("arguments", [{"rate": 0.0}, {"rounds": 0}, {"warmup": 0}, {"lam": 1.1}])
def test_a_critic_that_cannot_learn_is_refused(arguments):
    with pytest.raises(ValueError, match="AdapterCritic expects"):
        AdapterCritic(**arguments)
