"""A control for planners: as many planning tokens, in the same runs, at random places."""

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import stream_number, token_uniforms
from rlcredit.formulas.gaps import close_gaps, number_places, open_gaps
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.spans import plan_coverage


def rotated_plan_mask(plan_mask: Tensor, mask: Tensor, shifts: Tensor) -> Tensor:
    """Rotate each completion's planning mask along the completion.

    Args:
        plan_mask: True on planning tokens, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        shifts: Number of tokens by which each mask is rotated, shape ``(B,)`` int64.

    Returns:
        Boolean, shape ``(B, T)``, with as many true positions in every row as before.

    Example:
        >>> plan_mask = torch.tensor([[True, True, False, False, False]])
        >>> rotated_plan_mask(plan_mask, torch.ones(1, 5, dtype=torch.bool), torch.tensor([2]))
        tensor([[False, False,  True,  True, False]])

    """
    length = mask.sum(-1, keepdim=True).clamp(min=1)
    places = number_places(mask)
    rotated_places = (torch.arange(mask.shape[1], device=mask.device) - shifts[:, None]) % length
    return open_gaps(close_gaps(plan_mask, places).gather(-1, rotated_places), places) & mask


class RandomPlanner(CreditOperator, reads="step plan_mask", writes="plan_mask"):
    """Rotate the planning mask of the planner above by a random number of tokens, at least one.

    Coverage stays the same in every completion, and so do the runs of marked tokens, except that one may be cut in two
    at the ends. Their positions carry no information, so what a stack gains with this operator is not due to planning.

    Args:
        seed: Number that tells the rotations of two random planners apart; they also depend on the run's seed, step and
            row.

    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed

    def assign(self, rollout: Rollout) -> Metrics:
        """Rotate; log the share of tokens marked, and how many of them were marked before."""
        old_mask, length = rollout.plan_mask, rollout.mask.sum(-1)
        shape = (len(rollout.mask), 1)
        noise_stream = stream_number("RandomPlanner", self.seed)
        uniforms = token_uniforms(self.run_seed, rollout.step, noise_stream, shape, rollout.group_size).squeeze(-1)
        shifts = 1 + (uniforms.to(length.device) * (length - 1)).long()
        rollout.plan_mask = rotated_plan_mask(old_mask, rollout.mask, shifts)
        return {
            **plan_coverage(rollout.plan_mask, rollout.mask),
            "overlap": masked_mean(old_mask.float(), rollout.plan_mask),
        }
