import math

import pytest
import torch
from torch.testing import assert_close

from rlcredit.formulas.reward_histogram import RewardHistogram


def test_two_bins_are_wrong_and_right():
    histogram = RewardHistogram()
    assert_close(histogram.shares(torch.tensor([0.0, 1.0, 0.3])), torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.7, 0.3]]))
    # The mean is the probability of the second bin, whose logit is 2 - 1.
    assert histogram.mean(torch.tensor([[1.0, 2.0]])).item() == pytest.approx(1 / (1 + math.exp(-1)))


def test_bins_without_smoothing_divide_a_reward_between_neighbours():
    shares = RewardHistogram(bins=5, low=-1.0, high=3.0).shares(torch.tensor([-1.0, 1.25]))
    assert_close(shares, torch.tensor([[1.0, 0, 0, 0, 0], [0, 0, 0.75, 0.25, 0]]))


def test_a_smoothed_reward_is_a_gaussian_in_bins():
    histogram = RewardHistogram(bins=9, smoothing=1.0)  # centres at -1.5, -1, -0.5, 0, ... 2.5
    assert_close(histogram.centres, torch.linspace(-1.5, 2.5, 9))
    [shares] = histogram.shares(torch.tensor([0.5])).tolist()

    def below(deviations):
        return 0.5 * (1 + math.erf(deviations / math.sqrt(2)))

    within = below(4.5) - below(-4.5)
    assert shares[4] == pytest.approx((below(0.5) - below(-0.5)) / within)
    assert shares[6] == pytest.approx((below(2.5) - below(1.5)) / within)


@pytest.mark.parametrize("histogram", [RewardHistogram(51, 0.75), RewardHistogram(51, 0.75, -2.0, 4.0)], ids=str)
def test_a_smoothed_reward_keeps_its_mean(histogram):
    rewards = torch.linspace(histogram.low, histogram.high, 101)
    shares = histogram.shares(rewards)
    assert_close(shares.sum(-1), torch.ones(101))
    assert_close(histogram.mean(shares.log()), rewards, atol=1e-3, rtol=0)
    assert ((shares > 0.01).sum(-1) > 3).all()  # a reward is not in one bin


def test_a_reward_outside_is_refused_with_the_repair():
    with pytest.raises(ValueError, match=r"from 0 to 1\.5, the critic's histogram from 0 to 1\. Set its target"):
        RewardHistogram().shares(torch.tensor([0.0, 1.5]))
    with pytest.raises(ValueError, match=r"Rewards lie from -0\.5"):
        RewardHistogram().shares(torch.tensor([-0.5]))


@pytest.mark.parametrize("arguments", [{"bins": 1}, {"bins": 5, "smoothing": 0.75}, {"low": 1.0}, {"smoothing": -1.0}])
def test_a_histogram_without_room_is_refused(arguments):
    with pytest.raises(ValueError, match="RewardHistogram expects"):
        RewardHistogram(**arguments)
