"""SoftmaxGRPO: the completions of a group share its credit by a softmax of their rewards."""

import math

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import group_deviations


def softmax_advantages(rewards: Tensor, judged: Tensor, group_size: int, tau: float) -> Tensor:
    r"""Return the share of its group's softmax that each completion has beyond an equal one.

    .. math:: A_i = G\, \frac{e^{r_i / \tau}}{\sum_j e^{r_j / \tau}} - 1

    Eq. 1 of Hernandez et al. (2026, arXiv:2608.09271). No wrong answer is pushed harder than -1. With r in {0, 1} and
    falling temperature it becomes MaxRL; with rising temperature GRPO (mean-only) divided by tau.

    Args:
        rewards: Reward of each completion, shape ``(B,)``, groups of ``group_size`` neighbours.
        judged: False where there is no verdict, shape ``(B,)``; the others share the softmax, and G counts them.
        group_size: Completions per prompt, G.
        tau: Temperature, in units of reward.

    Returns:
        Advantages, shape ``(B,)``; they sum to zero in every group, and are zero where its rewards are equal and where
        there is no verdict.

    Example:
        >>> rewards, judged = torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.ones(4, dtype=torch.bool)
        >>> softmax_advantages(rewards, judged, group_size=4, tau=0.3).round(decimals=3)
        tensor([ 2.6130, -0.8710, -0.8710, -0.8710])

    """
    deviations, _ = group_deviations(rewards.where(judged, torch.nan), group_size)
    verdict_mask = judged.view(-1, group_size)
    shares = (deviations / tau).masked_fill(~verdict_mask, -math.inf).softmax(-1)
    differ = verdict_mask & ((deviations != 0) & verdict_mask).any(-1, keepdim=True)
    advantages = (verdict_mask.sum(-1, keepdim=True) * shares - 1).where(differ, 0)
    return advantages.flatten().to(rewards.dtype)


class SoftmaxGRPO(CreditOperator, reads="judged rewards", writes="advantages"):
    """Give every token of a completion :func:`softmax_advantages`.

    Args:
        tau: Temperature. The paper uses 0.1 and 0.3 for rewards in [0, 1].

    """

    def __init__(self, tau: float = 0.3) -> None:
        super().__init__()
        if not tau > 0:
            raise ValueError(f"SoftmaxGRPO expects tau > 0, got {tau}. MaxRL is the limit of low temperatures.")
        self.tau = tau

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the advantages; log their largest size."""
        advantages = softmax_advantages(rollout.rewards, rollout.judged, rollout.group_size, self.tau)
        rollout.advantages = advantages[:, None].expand(rollout.mask.shape)
        return {"advantage_max": advantages.abs().max()}

    def bound(self, limit: float, group_size: int) -> float:
        """One success among G: G / (1 + (G - 1) e^(-1 / tau)) - 1, and no failure beyond it."""
        return group_size / (1 + (group_size - 1) * math.exp(-1 / self.tau)) - 1
