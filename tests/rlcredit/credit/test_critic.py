"""What all critics have in common: they judge what they have not seen."""

import copy
import math

import pytest
import torch
from torch.testing import assert_close

from callbacks.critics.head_critic import HeadCritic
from callbacks.critics.ridge_critic import RidgeCritic
from callbacks.schedules.calibration_weight import CalibrationWeight
from callbacks.schedules.skill_weight import SkillWeight
from rlcredit.credit.contract import StackError
from rlcredit.credit.critic import describe_values, prefix_features
from rlcredit.credit.operator_state import move_state
from tests.callbacks.rollouts import THREE_AND_TWO, numbers, valued_rollout
from tests.conftest import make_rollout

EARLIER, AT_HAND = make_rollout(seed=1), make_rollout(seed=2)


def fresh(rollout):
    """The same facts with a neutral ledger."""
    return rollout.copy_with_neutral_ledger()


def small_head(**arguments):
    return HeadCritic(**{"width": 8, "fits": 5, "batch": 64, "warmup": 1, **arguments})


KINDS = {"ridge": lambda **arguments: RidgeCritic(**{"warmup": 1, **arguments}), "head": small_head}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def taught(critic, *rollouts):
    for rollout in rollouts or (EARLIER,):
        critic.assign(fresh(rollout))
    return critic


def values_of(critic, rollout):
    """Return the values that a copy of a critic gives to a rollout."""
    judged = fresh(rollout)
    copy.deepcopy(critic).assign(judged)
    return judged.values


def test_while_it_warms_up_it_takes_all_weight_and_values_are_neutral(kind):
    critic = kind(warmup=2)
    for _ in range(2):
        rollout = fresh(EARLIER)
        before = rollout.values
        metrics = critic.assign(rollout)
        assert rollout.values is before
        assert (rollout.critic, rollout.critic_weight) == (None, 0.0)
        assert metrics.keys() == {"loss"}
    rollout = fresh(AT_HAND)
    metrics = critic.assign(rollout)
    assert rollout.critic_weight == 1.0
    assert not torch.equal(rollout.values, fresh(AT_HAND).values)
    assert metrics.keys() == {"loss", "brier", "brier_group", "skill", "calibration"}


def test_a_second_critic_has_all_weight_and_none_while_it_warms_up(kind):
    first, second = kind(), kind(warmup=2)
    taught(first)
    for fitted in range(3):
        rollout = fresh(AT_HAND)
        first.assign(rollout)
        rollout.critic_weight = 0.25  # as a guard leaves it
        second.assign(rollout)
        assert rollout.critic_weight == (1.0 if fitted == 2 else 0.0)
        assert ("values" in rollout.unwritten) == (fitted < 2)
        assert torch.equal(rollout.values, fresh(AT_HAND).values) == (fitted < 2)


def test_guards_may_change_places():
    weights = []
    for order in ((0, 1), (1, 0)):
        critic, guards = RidgeCritic(), (SkillWeight(), CalibrationWeight())
        for seed in range(6):
            rollout = make_rollout(seed=seed)
            for operator in (critic, guards[order[0]], guards[order[1]]):
                operator.assign(rollout)
        weights.append((rollout.critic_weight, guards[0].skill, guards[1].together, guards[1].own))
    assert weights[0] == pytest.approx(weights[1])
    assert weights[0][2] != 0


def test_a_reward_that_its_histogram_cannot_hold_is_said_in_a_sentence():
    rollout = fresh(EARLIER)
    rollout.rewards = rollout.rewards - 0.5
    with pytest.raises(StackError, match=r"HeadCritic: Rewards lie from -0.5 to 0.5, the critic's histogram from 0 to"):
        small_head().assign(rollout)


def test_values_of_a_completion_do_not_depend_on_its_reward(kind):
    critic = taught(kind())
    values = values_of(critic, AT_HAND)
    for row in (0, 3, 5):
        other = fresh(AT_HAND)
        other.rewards = other.rewards.index_fill(0, torch.tensor([row]), 0.5)
        changed = fresh(other)
        changed.rewards = other.rewards
        copy.deepcopy(critic).assign(changed)
        assert torch.equal(changed.values[row], values[row])
        group = slice(4 * (row // 4), 4 * (row // 4) + 4)
        siblings = [sibling for sibling in range(group.start, group.stop) if sibling != row]
        assert not torch.equal(changed.values[siblings], values[siblings])  # their mean of the others has changed


def test_it_judges_a_rollout_before_it_learns_from_it(kind):
    critic, rollout = taught(kind()), fresh(AT_HAND)
    predict = copy.deepcopy(critic).make_predictor()
    critic.assign(rollout)
    rows, places = rollout.mask.nonzero(as_tuple=True)
    path = torch.zeros(len(rows), 5)
    for number, (row, place) in enumerate(zip(rows.tolist(), places.tolist())):
        surprisals = (-rollout.old_logprobs[row, :place]).tolist()
        if surprisals:
            surprised = sum(surprisal > 1.0 for surprisal in surprisals)
            path[number] = torch.tensor(
                [surprisals[-1], sum(surprisals), max(surprisals), surprised, len(surprisals) / 50]
            )
    features = prefix_features(rollout, rows, rollout.hidden[rows, places], path)
    assert_close(rollout.values[rows, places], predict(features), atol=1e-5, rtol=0)
    # What others ask of it later, it answers as it judged, not as it has learned since.
    assert_close(rollout.critic.estimate(rollout, rows, rollout.hidden[rows, places], path), predict(features))
    assert not torch.equal(critic.make_predictor()(features), predict(features))


def test_a_completion_without_a_verdict_teaches_nothing(kind):
    changed = fresh(EARLIER)
    critics = [kind(), kind()]
    for critic, hidden in zip(critics, (changed.hidden, changed.hidden.index_fill(0, torch.tensor([2]), 7.0))):
        rollout = fresh(EARLIER)
        rollout.judged = torch.arange(8) != 2
        rollout.hidden = hidden
        critic.assign(rollout)
    assert torch.equal(*(values_of(critic, AT_HAND) for critic in critics))


def test_a_rollout_without_any_verdict_is_none_that_it_has_learned_from(kind):
    critic = kind()
    for _ in range(2):
        rollout = fresh(EARLIER)
        rollout.judged = torch.zeros(8, dtype=torch.bool)
        assert critic.assign(rollout) == {}
    assert critic.fitted == 0
    taught(critic)
    rollout = fresh(AT_HAND)
    rollout.judged = torch.zeros(8, dtype=torch.bool)
    assert all(math.isfinite(value) for value in numbers(critic.assign(rollout)).values())
    assert critic.fitted == 1
    assert rollout.critic_weight == 1.0


def list_tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else []
    return [tensor for part in parts for tensor in list_tensors(part)]


def test_what_a_checkpoint_held_goes_to_the_device_of_the_rollout(kind):
    moved = taught(kind())
    move_state(moved, torch.device("meta"))
    assert {tensor.device.type for tensor in list_tensors(moved.state_dict())} == {"meta"}
    assert moved.fitted == 1


def test_features_are_state_path_and_the_rewards_of_the_others():
    rollout = make_rollout((1.0, 0.0, 0.5, 0.0), group_size=4)
    hidden, path = torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([[1.0, 2, 3, 4, 5], [6.0, 7, 8, 9, 10]])
    features = prefix_features(rollout, torch.tensor([0, 1]), hidden, path)
    scale = (25 / 2) ** 0.5
    expected = [[3 / scale, 4 / scale, 1, 2, 3, 4, 5, 0.5 / 3], [0, 0, 6, 7, 8, 9, 10, 0.5]]
    assert_close(features, torch.tensor(expected))


def test_returns_of_less_lambda_lean_on_its_own_values():
    critic, seen = RidgeCritic(warmup=1, lam=0.5), []
    taught(critic)
    fit = critic.fit
    critic.fit = lambda features, returns, noise: seen.append(returns) or fit(features, returns, noise)
    rollout = fresh(AT_HAND)
    critic.assign(rollout)
    expected = []
    for row, length in enumerate(rollout.mask.sum(-1).tolist()):
        values, target = rollout.values[row, :length].tolist(), rollout.rewards[row].item()
        returns = []
        for place in reversed(range(length)):
            # Half of the return so far, half of the value behind the token; behind the last both are the reward.
            returns.insert(0, target if place == length - 1 else 0.5 * target + 0.5 * values[place + 1])
            target = returns[0]
        expected += returns
    assert_close(seen[0], torch.tensor(expected), atol=1e-5, rtol=0)


def test_values_are_described_as_a_person_would():
    rollout = valued_rollout([1.0, 0.0], [[0.5, 0.75, 0.25], [0.5, 0.25, 9.0]], THREE_AND_TWO)
    metrics = numbers(describe_values(rollout))
    # Errors 0.5, 0.25, 0.75 and 0.5, 0.25; the baseline of each is the other's reward.
    assert metrics["brier"] == pytest.approx((0.25 + 0.0625 + 0.5625 + 0.25 + 0.0625) / 5)
    assert metrics["brier_group"] == 1.0
    assert metrics["skill"] == pytest.approx(1 - metrics["brier"])
    # Changes of the value 0, 0.25, -0.25 and 0, -0.25; the reward lies 0.5 above and below the first value.
    assert metrics["calibration"] == pytest.approx((0.125 - 0.125 + 0.125) / (3 * 0.0625))


@pytest.mark.parametrize("arguments", [{"warmup": 0}, {"lam": 1.5}, {"lam": -0.1}])
def test_a_critic_that_never_learned_cannot_be_used(kind, arguments):
    with pytest.raises(ValueError, match="expects warmup >= 1"):
        kind(**arguments)
