import pytest
import torch
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from callbacks.tokens.advantage_clip import AdvantageClip, clipped_advantages
from tests.conftest import make_rollout


def test_clip_fraction_is_of_the_tokens_that_have_credit():
    rollout = make_rollout([0.0] * 4, group_size=4)
    rollout.mask = torch.ones_like(rollout.mask)
    rollout.advantages = torch.tensor([0.0, 15.0, -1.0, 7.0])[:, None].expand(4, 6)
    metrics = AdvantageClip(limit=5.0).assign(rollout)
    assert rollout.advantages[:, 0].tolist() == [0, 5, -1, 5]
    assert metrics["clipped_fraction"].item() == pytest.approx(2 / 3)
    assert metrics["clipped_magnitude"] == 11
    assert metrics["triggered"] == 1


def test_the_published_example():
    assert_close(clipped_advantages(torch.tensor([[0.0, 15.0, -1.0, 7.0]]), 5.0), torch.tensor([[0.0, 5.0, -1.0, 5.0]]))


def test_a_limit_of_one_never_touches_mean_only_grpo():
    rollout = make_rollout([1.0] + [0.0] * 15, group_size=16)
    GRPO().assign(rollout)
    assert AdvantageClip(limit=1.0).assign(rollout)["clipped_fraction"] == 0


def test_it_touches_the_rare_success_that_maxrl_rewards():
    rollout = make_rollout([1.0] + [0.0] * 15, group_size=16)
    MaxRL().assign(rollout)
    share = AdvantageClip(limit=5.0).assign(rollout)["clipped_fraction"]
    assert share == pytest.approx(rollout.mask[0].sum().item() / rollout.mask.sum().item())
    assert rollout.advantages.max() == 5


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
def test_a_limit_that_would_erase_credit_is_refused(limit):
    with pytest.raises(ValueError, match="limit > 0"):
        AdvantageClip(limit=limit)
