import pytest
import torch
from torch.testing import assert_close

from callbacks.episode.rloo import rloo_advantages
from tests.callbacks.rollouts import group


def test_two_right_of_eight_under_rloo():
    expected = torch.tensor([0.857143] * 2 + [-0.285714] * 6)
    assert_close(rloo_advantages(group(2, 8), 8), expected, atol=1e-5, rtol=0)


def test_a_group_of_one_is_refused():
    with pytest.raises(ValueError, match="group_size >= 2"):
        rloo_advantages(torch.tensor([1.0]), 1)


def test_golden_values_of_rloo_for_real_rewards():
    rewards = torch.tensor([2.5, -1.0, 0.25, -0.75])
    # Less the mean of the three others: 2.5 + 1.5 / 3, -1 - 2 / 3, 0.25 - 0.75 / 3, -0.75 - 1.75 / 3.
    expected = torch.tensor([3.0, -5 / 3, 0.0, -4 / 3])
    assert_close(rloo_advantages(rewards, 4), expected)
    # Again, as 4 / 3 of the distance from the mean of all, 0.25: 4 / 3 of 2.25, -1.25, 0 and -1.
    assert_close(4 / 3 * torch.tensor([2.25, -1.25, 0.0, -1.0]), expected)
