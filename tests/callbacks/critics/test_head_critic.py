import pytest
import torch
from torch.testing import assert_close

from callbacks.critics.head_critic import HeadCritic
from rlcredit.formulas.reward_histogram import RewardHistogram
from tests.conftest import make_rollout


def draw_prefixes(number, seed=0):
    """Return features of prefixes, and rewards that the first of them decides."""
    features = torch.randn(number, 3, generator=torch.Generator().manual_seed(seed))
    return features, (features[:, 0] > 0).float()


@pytest.mark.parametrize("target", [None, RewardHistogram(51, 0.75)], ids=["two bins", "51 bins"])
def test_it_learns_what_decides_the_reward(target):
    critic, noise = HeadCritic(width=16, fits=100, batch=256, target=target), torch.Generator().manual_seed(0)
    critic.fit(*draw_prefixes(1000), noise)
    features, rewards = draw_prefixes(200, seed=1)
    assert (critic.make_predictor()(features) - rewards).square().mean() < 0.05


def test_it_keeps_the_last_rollouts_and_some_prefixes_of_each():
    critic, noise = HeadCritic(width=4, fits=1, batch=8, rollouts=2, prefixes=5), torch.Generator().manual_seed(0)
    for place, number in enumerate((3, 20, 4)):
        features, rewards = draw_prefixes(number)
        features[:, 2], rewards = place, features[:, 1].sigmoid()
        critic.fit(features, rewards, noise)
    assert [(len(features), features[0, 2].item()) for features, _ in critic.replay] == [(5, 1.0), (4, 2.0)]
    for features, rewards in critic.replay:  # the reward of a prefix has stayed with it
        assert_close(rewards, features[:, 1].sigmoid())
    drawn, _ = draw_prefixes(20)
    assert not torch.equal(critic.replay[0][0][:, 0], drawn[:5, 0])


def test_it_takes_four_times_as_many_steps_while_it_warms_up():
    critic = HeadCritic(width=4, fits=3, batch=8, warmup=1)
    taken = []
    for _ in range(2):
        rollout = make_rollout()
        critic.assign(rollout)
        taken.append(int(critic.network["moments"]["state"][0]["step"]))
    assert taken == [12, 15]


def test_rewards_beyond_its_histogram_are_refused_with_the_repair():
    with pytest.raises(ValueError, match="Set its target"):
        HeadCritic(width=4).assign(make_rollout((2.0, 0.0, 0.0, 1.0) * 2))


@pytest.mark.parametrize("arguments", [{"width": 0}, {"fits": 0}, {"rollouts": 0}, {"rate": 0.0}, {"decay": -1.0}])
def test_a_network_that_cannot_learn_is_refused(arguments):
    with pytest.raises(ValueError, match="HeadCritic expects"):
        HeadCritic(**arguments)
