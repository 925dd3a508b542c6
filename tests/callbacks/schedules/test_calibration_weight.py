import pytest
import torch

from callbacks.schedules.calibration_weight import CalibrationWeight
from rlcredit.formulas.groups import leave_one_out_means
from tests.callbacks.rollouts import valued_rollout


def weigh(operator, rollout):
    operator.assign(rollout)
    return rollout.critic_weight


def two_completions(right, wrong):
    """A right and a wrong completion with a value each; the other's reward is the baseline."""
    return valued_rollout([1.0, 0.0], [[right] * 2, [wrong] * 2])


def test_the_weight_is_the_slope_of_the_running_means():
    operator = CalibrationWeight(decay=0.5)
    # Rewards less baselines 1 and -1, values less baselines 2 and -2: means 2 and 4.
    assert weigh(operator, two_completions(2.0, -1.0)) == pytest.approx(2 / 4)
    # Values less baselines 0.5 and -0.5: means 0.5 and 0.25, added to half of those before.
    assert weigh(operator, two_completions(0.5, 0.5)) == pytest.approx((0.5 + 1) / (0.25 + 2))


def test_the_weight_is_a_share_whatever_the_slope():
    assert weigh(CalibrationWeight(), two_completions(0.5, 0.5)) == 1.0  # slope 2
    assert weigh(CalibrationWeight(), two_completions(-1.0, 2.0)) == 0.0  # slope -1
    assert weigh(CalibrationWeight(), two_completions(0.0, 1.0)) == 0.0  # values that are the baseline
    rollout = two_completions(2.0, -1.0)
    rollout.critic_weight = 0.5
    assert weigh(CalibrationWeight(strength=2.0), rollout) == pytest.approx(0.5 * 0.25)


@pytest.mark.parametrize(("factor", "expected"), [(1.0, 1.0), (2.0, 0.5), (4.0, 0.25)])
def test_a_calibrated_critic_is_trusted_and_one_that_exaggerates_twofold_by_half(factor, expected):
    generator = torch.Generator().manual_seed(0)
    chances = torch.rand(32_000, generator=generator)
    rewards = torch.bernoulli(chances, generator=generator)
    baselines = leave_one_out_means(rewards, 8)
    values = baselines + factor * (chances - baselines)
    rollout = valued_rollout(rewards.tolist(), values[:, None].expand(-1, 2).tolist(), group_size=8)
    # Deviations of 0.34 from the baseline and of 0.41 of a reward from its chance: an error of 0.007 of the slope.
    assert weigh(CalibrationWeight(), rollout) == pytest.approx(expected, abs=0.03)


def test_a_critic_that_warms_up_is_not_measured():
    operator, rollout = CalibrationWeight(), two_completions(2.0, -1.0)
    rollout.critic_weight = 0.0
    assert weigh(operator, rollout) == 0.0
    assert (operator.together, operator.own) == (0.0, 0.0)


@pytest.mark.parametrize("arguments", [{"decay": 1.0}, {"decay": -0.1}, {"strength": -1.0}])
def test_a_mean_that_forgets_nothing_is_refused(arguments):
    with pytest.raises(ValueError, match="CalibrationWeight expects"):
        CalibrationWeight(**arguments)
