"""The placebo of a planner: as many planning tokens, in the same runs, at the wrong places."""

import torch
from torch import Tensor

from callbacks.base import CreditOperator, Metrics
from rlcredit.engines.noise import PLACEBO, uniforms
from rlcredit.functional.masked import masked_mean
from rlcredit.functional.spans import plan_coverage
from rlcredit.rollout import Rollout


def rotated_plan_mask(plan_mask: Tensor, mask: Tensor, turns: Tensor) -> Tensor:
    """Rotate each completion's planning mask along the completion.

    Args:
        plan_mask: true on planning tokens, shape ``(B, T)``.
        mask: true on sampled tokens, a prefix of each row, shape ``(B, T)``.
        turns: by which share of its length each completion is rotated, in [0, 1), shape ``(B,)``.

    Returns:
        Boolean, shape ``(B, T)``, with as many true positions in every row as before.

    Example:
        >>> plan_mask = torch.tensor([[True, True, False, False, False]])
        >>> rotated_plan_mask(plan_mask, torch.ones(1, 5, dtype=torch.bool), torch.tensor([0.4]))
        tensor([[False, False,  True,  True, False]])

    """
    length = mask.sum(-1, keepdim=True)
    shift = (turns[:, None] * length).round().long()
    places = (torch.arange(mask.shape[1], device=mask.device) - shift) % length.clamp(min=1)
    return plan_mask.gather(-1, places) & mask


class RandomPlanner(CreditOperator, reads="step plan_mask", writes="plan_mask"):
    """Rotate the planning mask of the planner above by a random part of each completion's length.

    Coverage stays the same in every completion, and so do the lengths of the marked runs; where they lie says nothing
    any more. What a stack gains with it, it does not owe to planning.

    Args:
        seed: of the rotations, which depend on it, on the step and on the row.

    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed

    def assign(self, rollout: Rollout) -> Metrics:
        """Rotate; log the share of tokens marked, and how many of them were marked before."""
        before, rows = rollout.plan_mask, len(rollout.mask)
        turns = uniforms(self.seed, rollout.step, [PLACEBO] * rows, list(range(rows)), length=1)
        rollout.plan_mask = rotated_plan_mask(before, rollout.mask, turns.squeeze(-1).to(before.device))
        return {
            **plan_coverage(rollout.plan_mask, rollout.mask),
            "overlap": masked_mean(before.float(), rollout.plan_mask),
        }
