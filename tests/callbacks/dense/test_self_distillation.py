import math
from dataclasses import dataclass, field

import pytest
import torch
from torch.testing import assert_close

from callbacks.dense.self_distillation import SelfDistillation
from tests.callbacks.rollouts import numbers
from tests.conftest import KnownLookahead, make_rollout
from tests.rlcredit.training.sampled_rollouts import sample_rollout

MASK = torch.tensor([[True, True, True], [True, True, False], [True, False, False]])
PLAIN = torch.tensor([[-1.0, -1.0, -1.0], [-2.0, -3.0, 0.0], [-1.0, 0.0, 0.0]])
HINTED = [[-0.5, -3.0, -1.0], [-3.0, -1.0, 7.0], [-5.0, 7.0, 7.0]]
"""Log-probabilities of a group; the hint changes them by 0.5, -2 and 0, by -1 and 2, and by -4."""


@dataclass
class ToldHints(KnownLookahead):
    """A policy whose log-probabilities and entropies after every hint are told."""

    logprobs: list = field(default_factory=lambda: HINTED)
    entropy: list = field(default_factory=lambda: [[0.0] * 3, [0.0, math.log(3), 9.0], [5.0, 9.0, 9.0]])
    hints: list = field(default_factory=list)

    def score_with_hint(self, rollout, row_mask, hint):
        self.hints.append((hint, row_mask.tolist()))
        return torch.tensor(self.logprobs), torch.tensor(self.entropy)


def make_example(verdicts=(0.0, 0.0, 0.0)):
    """One group of three completions of three tokens, two and one."""
    rollout = make_rollout(verdicts, group_size=3, width=3)
    rollout.mask, rollout.old_logprobs, rollout.lookahead = MASK, PLAIN, ToldHints()
    rollout.advantages = torch.zeros(3, 3)
    return rollout


def test_the_worked_example():
    rollout = make_example()
    metrics = numbers(SelfDistillation(scale=0.5).assign(rollout))
    # In the second row entropies of 0 and ln 3 make weights of 3/2 and 1/2; in the others all tokens weigh one.
    expected = [[0.25, -1.0, 0.0], [-0.75, 0.5, 0.0], [-2.0, 0.0, 0.0]]
    assert_close(rollout.advantages, torch.tensor(expected))
    assert metrics == pytest.approx({"read_fraction": 1.0, "shift": -0.75, "less_likely": 0.5, "size": 0.75})
    assert rollout.lookahead.hints == [("\n\nThe answer is {answer}.", [True, True, True])]


def test_without_beta_credit_is_the_shift():
    rollout = make_example()
    SelfDistillation(beta=0.0).assign(rollout)
    assert_close(rollout.advantages, torch.tensor([[0.5, -2.0, 0.0], [-1.0, 2.0, 0.0], [-4.0, 0.0, 0.0]]))


def test_a_group_with_a_right_answer_keeps_its_credit_and_is_not_read():
    rollout = make_example((0.0, 1.0, 0.0))
    rollout.advantages = torch.tensor([[-1.0] * 3, [2.0, 2.0, 0.0], [-1.0, 0.0, 0.0]])
    old_credit = rollout.advantages.clone()
    metrics = numbers(SelfDistillation().assign(rollout))
    assert torch.equal(rollout.advantages, old_credit)
    assert metrics == {"read_fraction": 0.0, "shift": 0.0, "less_likely": 0.0, "size": 0.0}
    assert rollout.lookahead.hints[0][1] == [False, False, False]


def test_among_all_groups_it_is_added_to_the_credit_of_right_answers_too():
    rollout = make_example((0.0, 1.0, 0.0))
    rollout.advantages = torch.ones(3, 3)
    SelfDistillation(groups="all", beta=0.0).assign(rollout)
    assert rollout.advantages[1].tolist() == [0.0, 3.0, 1.0]


def test_a_completion_without_a_verdict_does_not_make_its_group_right_and_is_not_read():
    rollout = make_example()
    rollout.judged = torch.tensor([True, False, True])
    SelfDistillation().assign(rollout)
    assert rollout.lookahead.hints[0][1] == [True, False, True]
    assert not rollout.advantages[1].any()
    assert rollout.advantages[2].tolist() == [-4.0, 0.0, 0.0]


def test_a_hint_that_says_nothing_gives_no_credit(policy):
    rollout = sample_rollout(policy)
    SelfDistillation(hint="").assign(rollout)
    assert_close(rollout.advantages, torch.zeros_like(rollout.advantages), atol=1e-4, rtol=0)
    SelfDistillation().assign(rollout)
    assert rollout.advantages[rollout.mask].abs().max() > 0.1


@pytest.mark.parametrize("arguments", [{"scale": -1.0}, {"beta": -1.0}, {"groups": "wrong"}])
def test_other_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match=r"SelfDistillation expects"):
        SelfDistillation(**arguments)
