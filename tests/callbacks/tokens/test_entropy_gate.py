import math

import pytest
import torch
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO
from callbacks.signals.process_signal import ProcessSignal
from callbacks.tokens.entropy_gate import EntropyGate, entropy_gate
from callbacks.tokens.outcome_anchor import OutcomeAnchor
from rlcredit.credit.contract import StackError
from rlcredit.credit.stack_checks import check_stack
from tests.callbacks.rollouts import THREE_AND_TWO
from tests.conftest import make_rollout


def test_the_gate_is_a_sigmoid_of_the_groups_standard_score():
    entropy = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 50.0]])  # five tokens: mean 2, deviation sqrt 2
    expected = torch.sigmoid(5.0 * (entropy - 2) / math.sqrt(2)).where(THREE_AND_TWO, 0.5)
    assert_close(entropy_gate(entropy, THREE_AND_TWO, 2, 5.0), expected)
    assert (entropy_gate(torch.full((2, 3), 0.3), THREE_AND_TWO, 2, 5.0) == 0.5).all()


@pytest.mark.parametrize(("normalize", "mean"), [("none", 0.5), ("double", 1.0), ("mean", 1.0)])
def test_the_gate_can_keep_the_size_of_the_update(normalize, mean):
    rollout = make_rollout([1.0, 0.0], group_size=2, width=4)
    rollout.mask = torch.ones(2, 4, dtype=torch.bool)
    rollout.entropy = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(2, 4)
    rollout.advantages = torch.ones(2, 4)
    metrics = EntropyGate(gamma=2.0, normalize=normalize).assign(rollout)
    assert rollout.advantages.mean().item() == pytest.approx(mean)
    assert metrics["pivot_fraction"] == 0.5
    assert metrics["gate_mean"].item() == pytest.approx(0.5)


@pytest.mark.parametrize(("gated", "spared"), [("advantages", "process"), ("process", "advantages")])
def test_advantages_and_process_have_gates_of_their_own(gated, spared):
    rollout, both = make_rollout(), make_rollout()
    for each in (rollout, both):
        each.advantages, each.process = each.old_logprobs, each.entropy
    before = getattr(rollout, spared)
    EntropyGate(**{spared: False}).assign_checked(rollout)
    EntropyGate().assign_checked(both)
    assert getattr(rollout, spared) is before
    assert_close(getattr(rollout, gated), getattr(both, gated))


def test_a_completion_can_be_compared_with_itself():
    rollout = make_rollout([1.0, 0.0], group_size=2, width=2)
    rollout.mask = torch.ones(2, 2, dtype=torch.bool)
    rollout.entropy, rollout.advantages = torch.tensor([[0.0, 1.0], [4.0, 5.0]]), torch.ones(2, 2)
    EntropyGate(gamma=1.0, scope="sequence", process=False).assign(rollout)
    assert_close(rollout.advantages, torch.tensor([[-1.0, 1.0]]).sigmoid().expand(2, 2))


def test_the_lints_know_what_a_gate_writes():
    stack = [GRPO(), ProcessSignal(), OutcomeAnchor()]
    with pytest.raises(StackError, match="GRPO overwrites the `advantages` of EntropyGate"):
        check_stack([EntropyGate(process=False), *stack])
    check_stack([stack[0], stack[1], EntropyGate(advantages=False), stack[2]])
    check_stack([ProcessSignal(), EntropyGate(advantages=False), stack[0], stack[2]])
    check_stack([*stack, EntropyGate(process=False)])
    with pytest.raises(StackError, match="EntropyGate writes `process`, which nothing below it reads"):
        check_stack([*stack, EntropyGate()])
    with pytest.raises(StackError, match="gates neither advantages nor process"):
        EntropyGate(advantages=False, process=False)


def test_a_gate_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="gamma >= 0"):
        EntropyGate(gamma=-1.0)
    with pytest.raises(ValueError, match="scope to be one of sequence, group, got 'batch'"):
        EntropyGate(scope="batch")
    with pytest.raises(ValueError, match="normalize to be one of none, double, mean, got 'sum'"):
        EntropyGate(normalize="sum")
