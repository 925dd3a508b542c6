"""Batches without tokens, of one completion and of one group are batches: every operator gets through them."""

import copy
import math
import warnings

import pytest
import torch

from callbacks import StackWarning
from callbacks.episode.pass_at_k import PassAtK
from callbacks.episode.rloo import RLOO
from callbacks.tokens.entropy_mask import entropy_mask
from tests.conftest import make_rollout
from tests.contracts.test_contracts import midway
from tests.contracts.test_unjudged import OPERATORS, name


def without_tokens():
    rollout = midway()
    rollout.mask = torch.zeros_like(rollout.mask)
    rollout.turn = torch.full_like(rollout.turn, -1)
    rollout.tokens = [[] for _ in rollout.tokens]
    return rollout


def one_judged():
    rollout = make_rollout([1.0, 1.0, 1.0], group_size=3)
    rollout.judged = torch.tensor([False, True, False])
    return rollout


BATCHES = {
    "no tokens": without_tokens,
    "one completion": lambda: make_rollout([1.0], group_size=1),
    "one group": lambda: make_rollout([1.0, 0.0, 0.0], group_size=3),
    "one judged": one_judged,
}


@pytest.mark.parametrize("operator", OPERATORS, ids=name)
def test_every_operator_gets_through(operator):
    for title, make_batch in BATCHES.items():
        rollout = make_batch()
        if rollout.group_size == 1 and isinstance(operator, (RLOO, PassAtK)):
            continue  # refused in words: nothing is left out, and there are not k tries
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StackWarning)
            metrics = copy.deepcopy(operator).assign_checked(rollout)
        assert all(math.isfinite(float(value)) for value in metrics.values()), title


def test_a_mask_of_no_tokens_marks_none_with_ties_or_without():
    for ties in (False, True):
        for mask in (torch.zeros(2, 3, dtype=torch.bool), torch.zeros(2, 0, dtype=torch.bool)):
            for scope in ("sequence", "group", "batch"):
                assert not entropy_mask(torch.rand(mask.shape), mask, 0.5, scope, 2, keep_ties=ties).any()
