"""RLOO: a completion is worth what it earns above the others of its group."""

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import leave_one_out_deviations


def rloo_advantages(rewards: Tensor, group_size: int) -> Tensor:
    r"""Subtract the mean reward of the *other* completions, an unbiased baseline.

    .. math:: A_i = r_i - \frac{1}{G-1} \sum_{j \ne i} r_j = \frac{G}{G-1} (r_i - \bar r)

    Ahmadian et al. (2024, arXiv:2402.14740). It is mean-only GRPO times G / (G - 1). G counts the judged.

    Args:
        rewards: NaN where there was no verdict, shape ``(B,)``, groups of ``group_size`` neighbours.
        group_size: Completions per prompt G, at least 2.

    Returns:
        Advantages, shape ``(B,)``; they sum to zero in every group, and are zero without a verdict and where it is the
        group's only one.

    Raises:
        ValueError: a group of one leaves nothing out.

    Example:
        >>> rloo_advantages(torch.tensor([1.0, 0.0, 0.0, 0.0]), group_size=4)
        tensor([ 1.0000, -0.3333, -0.3333, -0.3333])

    """
    if group_size < 2:
        raise ValueError(f"RLOO expects group_size >= 2, got {group_size}. Set model.sampling.completions.")
    return leave_one_out_deviations(rewards, group_size).flatten().to(rewards.dtype)


class RLOO(CreditOperator, reads="judged rewards", writes="advantages"):
    """Give every token of a completion :func:`rloo_advantages`."""

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the advantages; log their largest size."""
        advantages = rloo_advantages(rollout.judged_rewards, rollout.group_size)
        rollout.advantages = advantages[:, None].expand(rollout.mask.shape)
        return {"advantage_max": advantages.abs().max()}

    def bound(self, limit: float, group_size: int) -> float:
        """The only right or the only wrong one of a group gets 1."""
        return rloo_advantages(torch.eye(group_size)[0], group_size).abs().max().item()
