import pytest
import torch

from callbacks.schedules.calibration_weight import CalibrationWeight
from tests.callbacks.rollouts import valued_rollout


def weigh(operator, rollout):
    operator.assign(rollout)
    return rollout.critic_weight


def two_completions(up, down):
    """A right and a wrong completion of two tokens; values begin at one half and change by so much."""
    return valued_rollout([1.0, 0.0], [[0.5, 0.5 + up], [0.5, 0.5 + down]])


def test_the_weight_is_the_slope_of_the_running_means():
    operator = CalibrationWeight(decay=0.5)
    # Changes 1 and -1 of one token in two, rewards 0.5 above and below the start: means 0.25 and 0.5.
    assert weigh(operator, two_completions(1.0, -1.0)) == pytest.approx(0.25 / 0.5)
    # Changes 0.5 and 0: means 0.0625 and 0.0625, added to half of those before.
    assert weigh(operator, two_completions(0.5, 0.0)) == pytest.approx((0.0625 + 0.125) / (0.0625 + 0.25))


def test_the_weight_is_a_share_whatever_the_slope():
    assert weigh(CalibrationWeight(), two_completions(0.25, -0.25)) == 1.0  # slope 2
    assert weigh(CalibrationWeight(), two_completions(-0.5, 0.5)) == 0.0  # slope -1
    assert weigh(CalibrationWeight(), two_completions(0.0, 0.0)) == 0.0  # values that never change
    rollout = two_completions(1.0, -1.0)
    rollout.critic_weight = 0.5
    assert weigh(CalibrationWeight(strength=2.0), rollout) == pytest.approx(0.5 * 0.25)


@pytest.mark.parametrize(("factor", "expected"), [(1.0, 1.0), (2.0, 0.5), (4.0, 0.25)])
@pytest.mark.parametrize("hardness", [0.05, 0.4])
def test_a_calibrated_critic_is_trusted_and_one_that_exaggerates_twofold_by_half(factor, expected, hardness):
    generator = torch.Generator().manual_seed(0)
    known = hardness * (2 * torch.rand(200_000, generator=generator) - 1)  # what is foreseen after the first token
    rewards = torch.bernoulli(0.5 + known, generator=generator)
    values = torch.stack([torch.full_like(known, 0.5), 0.5 + factor * known], -1)
    rollout = valued_rollout(rewards.tolist(), values.tolist(), group_size=8)
    # The error of the slope is 0.5 over the deviation of what is known, 0.029 and 0.23, and over the root of 200,000.
    assert weigh(CalibrationWeight(), rollout) == pytest.approx(expected, abs=0.12 if hardness == 0.05 else 0.015)


def test_a_critic_that_warms_up_is_not_measured():
    operator, rollout = CalibrationWeight(), two_completions(1.0, -1.0)
    rollout.make_neutral("values")
    rollout.critic_weight = 0.0
    assert weigh(operator, rollout) == 0.0
    assert (operator.together, operator.own) == (0.0, 0.0)


@pytest.mark.parametrize("arguments", [{"decay": 1.0}, {"decay": -0.1}, {"strength": -1.0}])
def test_a_mean_that_forgets_nothing_is_refused(arguments):
    with pytest.raises(ValueError, match="CalibrationWeight expects"):
        CalibrationWeight(**arguments)
