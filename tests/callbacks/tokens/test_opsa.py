import pytest
import torch
from torch.testing import assert_close

from callbacks.tokens.opsa import OPSA
from tests.callbacks.rollouts import numbers
from tests.conftest import make_rollout

MASK = torch.tensor([[True] * 5, [True, True, True, True, False], [True, False, False, False, False]])
LOGPROBS = torch.tensor(
    [[-3.0, -1.0, -2.0, -0.5, -0.1], [-0.1, -1.0, -0.2, -2.0, -9.0], [-0.1, -9.0, -9.0, -9.0, -9.0]]
)
ENTROPY = torch.tensor([[1.0, 2.0, 3.0, 9.0, 0.0], [9.0, 0.5, 9.0, 0.5, 9.0], [1.0, 9.0, 9.0, 9.0, 9.0]])


def make_example(verdicts=(0.0, 0.0, 0.0)):
    """One group of three completions of five tokens, four and one."""
    rollout = make_rollout(verdicts, group_size=3, width=5)
    rollout.mask, rollout.old_logprobs, rollout.entropy = MASK, LOGPROBS, ENTROPY
    rollout.advantages = torch.zeros(3, 5)
    return rollout


def test_the_worked_example():
    rollout = make_example()
    metrics = numbers(OPSA(share=0.6).assign(rollout))
    # Three of five tokens, two of four, one of one; their entropies are 1, 2, 3, then equal, then alone.
    expected = [[-0.5, -0.75, -1.0, 0.0, 0.0], [0.0, -0.75, 0.0, -0.75, 0.0], [-0.75, 0.0, 0.0, 0.0, 0.0]]
    assert_close(rollout.advantages, torch.tensor(expected))
    assert metrics == pytest.approx({"punished_fraction": 0.6, "logprob": -9.1 / 6})


def test_without_spread_the_punishment_is_constant_and_the_default_share_a_fifth():
    rollout = make_example()
    OPSA(size=0.5, spread=0.0).assign(rollout)
    expected = [[-0.5, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -0.5, 0.0], [-0.5, 0.0, 0.0, 0.0, 0.0]]
    assert rollout.advantages.tolist() == expected


@pytest.mark.parametrize(("groups", "punished"), [("all_wrong", 0), ("all", 3)])
def test_a_group_with_a_right_answer_is_punished_only_if_all_are(groups, punished):
    rollout = make_example((0.0, 1.0, 0.0))
    OPSA(groups=groups).assign(rollout)
    assert torch.count_nonzero(rollout.advantages) == punished


@pytest.mark.parametrize("arguments", [{"share": 0.0}, {"spread": 1.0}, {"spread": -0.1}, {"groups": "wrong"}])
def test_other_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match=r"OPSA expects"):
        OPSA(**arguments)
