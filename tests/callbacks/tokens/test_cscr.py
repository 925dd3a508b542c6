import math
from dataclasses import dataclass

import pytest
import torch
from torch.testing import assert_close

from callbacks.tokens.cscr import CSCR
from tests.callbacks.rollouts import numbers
from tests.conftest import KnownLookahead, make_rollout

MASK = torch.tensor([[True, True, True], [True, True, False], [True, False, False]])
LOG_3 = math.log(3)
SHIFTS = {
    "right": [[0.0, 0.0, LOG_3], [LOG_3, 0.0, 9.0], [-2.0, 9.0, 9.0]],
    "wrong": [[0.0, LOG_3, -1.0], [0.5, 0.0, 9.0], [-1.0, 9.0, 9.0]],
}
"""What two claims change about the log-probabilities of a group."""


@dataclass
class ToldShifts(KnownLookahead):
    """A policy to which claims do what is told."""

    def score_with_hint(self, rollout, row_mask, hint):
        return rollout.old_logprobs + torch.tensor(SHIFTS[hint]), rollout.entropy


def make_example(advantages):
    """One group of three completions of three tokens, two and one, with an advantage each."""
    rollout = make_rollout((1.0, 0.0, 0.0), group_size=3, width=3)
    rollout.mask, rollout.lookahead = MASK, ToldShifts()
    rollout.advantages = torch.tensor(advantages)[:, None] * MASK
    return rollout


def test_the_worked_example():
    rollout = make_example([2.0, -1.0, -1.0])
    metrics = numbers(CSCR(right="right", wrong="wrong").assign(rollout))
    # Sensitivities 0, ln 3, ln 3; ln 3, 0; 2. Factors 1, 1/3, 1/3 of mean 5/9; 1/3, 1 of mean 2/3; a single token.
    expected = [[3.6, 1.2, 1.2], [-0.5, -1.5, 0.0], [-1.0, 0.0, 0.0]]
    assert_close(rollout.advantages, torch.tensor(expected))
    assert metrics == pytest.approx(
        {"sensitivity": (3 * LOG_3 + 2) / 6, "same_direction": 2 / 6, "weight_min": 0.5, "weight_max": 1.8}
    )


def test_the_sum_of_flat_credit_and_its_sign_stay():
    rollout = make_example([2.0, -1.0, -0.5])
    old_sums = rollout.advantages.sum(-1)
    CSCR(right="right", wrong="wrong", strength=3.0).assign(rollout)
    assert_close(rollout.advantages.sum(-1), old_sums)
    assert (rollout.advantages.sign() == torch.tensor([[1.0], [-1.0], [-1.0]]) * MASK).all()


def test_only_completions_with_credit_are_read():
    rollout, rows = make_example([2.0, 0.0, 0.0]), []
    rollout.lookahead.score_with_hint = lambda rollout, row_mask, hint: (
        rows.append(row_mask.tolist()) or (rollout.old_logprobs, rollout.entropy)
    )
    CSCR().assign(rollout)
    assert rows == [[True, False, False]] * 2


def test_a_shift_that_leaves_nothing_of_any_token_leaves_finite_credit():
    rollout = make_example([2.0, -1.0, -1.0])
    CSCR(right="right", wrong="wrong", strength=1e4).assign(rollout)
    assert rollout.advantages.tolist() == [[6.0, 0.0, 0.0], [0.0, -2.0, 0.0], [-1.0, 0.0, 0.0]]


def test_a_negative_strength_is_refused():
    with pytest.raises(ValueError, match=r"strength >= 0, got -1"):
        CSCR(strength=-1.0)
