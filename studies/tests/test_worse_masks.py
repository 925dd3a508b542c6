"""Planning masks that are worse than the phrases."""

import pytest
import torch
from torch.testing import assert_close

from rlcredit.credit.stack import CreditStack
from studies.credit_patterns import worse_masks

PLAN = torch.tensor([[True, True, False, True, False, False]])
MASK = torch.tensor([[True, True, True, True, True, False]])


def test_a_stretch_is_missed_whole_by_the_number_of_its_first_token():
    uniforms = torch.tensor([[0.4, 0.9, 0.1, 0.7, 0.1, 0.1]])
    assert worse_masks.mark_missed_stretches(PLAN, uniforms, 0.5).tolist() == [
        [False, False, False, True, False, False]
    ]
    assert worse_masks.mark_missed_stretches(PLAN, uniforms, 0.3).tolist() == PLAN.tolist()
    assert not worse_masks.mark_missed_stretches(PLAN, uniforms, 1.0).any()


def test_a_stretch_ends_with_its_row():
    plan = torch.tensor([[False, True], [True, False]])
    uniforms = torch.tensor([[0.1, 0.9], [0.1, 0.9]])
    assert worse_masks.mark_missed_stretches(plan, uniforms, 0.5).tolist() == [[False, True], [False, False]]


def test_as_many_wrong_marks_as_planning_tokens_where_there_is_room():
    plan = torch.tensor([[True, False, False, False], [True, True, False, False], [False, False, False, False]])
    mask = torch.tensor([[True, True, True, False], [True, True, True, True], [True, True, True, True]])
    scores = torch.tensor([[9.0, 1.0, 2.0, 8.0], [0.0, 0.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])
    marked = worse_masks.add_wrong_marks(plan, mask, scores)
    assert marked.tolist() == [[True, False, True, False], [True, True, True, True], [False, False, False, False]]


def test_three_tokens_of_five_leave_room_for_two_wrong_marks():
    marked = worse_masks.add_wrong_marks(PLAN, MASK, torch.ones(1, 6))
    assert marked.tolist() == MASK.tolist()


@pytest.fixture
def planning(rollout):
    """A rollout in which two of six words of every completion are a phrase."""
    rollout.tokens = [["Notice", " that", " 4", " +", " 5", " 9"][: int(row.sum())] for row in rollout.mask]
    return rollout


@pytest.mark.parametrize("name", worse_masks.STACKS)
def test_every_stack_leaves_credit_of_the_same_signs(planning, name):
    advantages = CreditStack(worse_masks.STACKS[name]()).assign(planning).advantages
    flat = CreditStack(worse_masks.STACKS["GRPO"]()).assign(planning).advantages
    assert_close(advantages.sign().where(planning.mask, 0), flat.sign().where(planning.mask, 0))


def test_marks_of_the_most_surprising_tokens_take_these_out_of_the_pool(planning):
    stack = CreditStack(worse_masks.STACKS["half wrong, surprising"]())
    left = stack.assign(planning)
    true = CreditStack(worse_masks.STACKS["SEPA"]()).assign(planning)
    added = left.plan_mask & ~true.plan_mask
    execution = (planning.mask & ~true.plan_mask).sum(-1)
    assert_close(added.sum(-1), torch.minimum(true.plan_mask.sum(-1), execution))
    surprise = -planning.old_logprobs
    for row in added.any(-1).nonzero().flatten().tolist():
        others = planning.mask[row] & ~left.plan_mask[row]
        assert not others.any() or surprise[row][added[row]].min() >= surprise[row][others].max()
    assert_close(left.signal[added], surprise[added])
