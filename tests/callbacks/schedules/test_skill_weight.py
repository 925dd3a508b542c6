import pytest

from callbacks.schedules.skill_weight import SkillWeight
from tests.callbacks.rollouts import valued_rollout


def rollout_of(values, rewards=(1.0, 0.0, 0.0, 1.0)):
    """Four completions of two tokens with one value each."""
    return valued_rollout(list(rewards), [[value, value] for value in values])


def weigh(operator, rollout):
    operator.assign(rollout)
    return rollout.critic_weight


def test_the_weight_is_the_running_mean_of_the_skill():
    # Baselines are 1/3 for right and 2/3 for wrong, a Brier score of 4/9; values of 0.5 have one of 1/4.
    even, known = rollout_of([0.5] * 4), rollout_of([1.0, 0.0, 0.0, 1.0])
    operator = SkillWeight(decay=0.75)
    assert weigh(operator, even) == pytest.approx(0.25 * (1 - 9 / 16))
    assert weigh(operator, known) == pytest.approx(0.75 * 0.25 * 7 / 16 + 0.25)


def test_the_strength_is_an_exponent_and_the_weight_a_factor():
    rollout = rollout_of([1.0, 0.0, 0.0, 1.0])
    rollout.critic_weight = 0.5
    assert weigh(SkillWeight(decay=0.75, strength=2.0), rollout) == pytest.approx(0.5 * 0.25**2)


def test_a_critic_that_says_the_same_of_everything_loses_its_weight():
    operator = SkillWeight(decay=0.7)
    weights = [weigh(operator, rollout_of([1.0, 0.0, 0.0, 1.0])) for _ in range(3)]
    assert weights == pytest.approx([0.3, 0.51, 0.657])
    stale = [weigh(operator, rollout_of([0.95] * 4, rewards=(0.0, 0.0, 0.0, 1.0))) for _ in range(20)]
    assert stale[:2] == pytest.approx([0.7 * 0.657, 0.49 * 0.657])
    assert stale[-1] < 1e-3


def test_a_critic_that_warms_up_is_not_measured():
    operator, rollout = SkillWeight(decay=0.5), rollout_of([1.0, 0.0, 0.0, 1.0])
    rollout.make_neutral("values")
    rollout.critic_weight = 0.0
    assert weigh(operator, rollout) == 0.0
    assert weigh(operator, rollout_of([1.0, 0.0, 0.0, 1.0])) == 0.5


@pytest.mark.parametrize("arguments", [{"decay": 1.0}, {"decay": -0.1}, {"strength": -1.0}])
def test_a_mean_that_forgets_nothing_is_refused(arguments):
    with pytest.raises(ValueError, match="SkillWeight expects"):
        SkillWeight(**arguments)
