"""HICRA: planning tokens gain more when the completion is right and lose less when it is wrong."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean, masked_sum


def hicra_advantages(advantages: Tensor, plan_mask: Tensor, alpha: float) -> Tensor:
    r"""Raise the advantages of planning tokens by a share of their size.

    .. math:: A'_t = A_t + \alpha\, |A_t|\, 1_{plan}(t)

    Wang et al. (2025, arXiv:2509.03646). That is :math:`(1 + \alpha) A_t` for a positive advantage and
    :math:`(1 - \alpha) A_t` for a negative one: no sign flips while alpha is at most one.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        plan_mask: True on planning tokens, shape ``(B, T)``.
        alpha: Strength in [0, 1]; 0 is the identity.

    Returns:
        Shape ``(B, T)``.

    Example:
        >>> import torch
        >>> hicra_advantages(torch.tensor([[1.0, -1.0, 1.0]]), torch.tensor([[True, True, False]]), alpha=0.2)
        tensor([[ 1.2000, -0.8000,  1.0000]])

    """
    return advantages + alpha * advantages.abs() * plan_mask


class HICRA(CreditOperator, reads="advantages plan_mask", writes="advantages", neutral={"alpha": 0.0}):
    """Apply :func:`hicra_advantages` to the ledger.

    Args:
        alpha: Strength. The paper uses 0.2.

    """

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        if not 0 <= alpha <= 1:
            raise ValueError(
                f"HICRA expects alpha in [0, 1], got {alpha}. Above 1 it would praise the planning of wrong answers, "
                "below 0 punish that of right ones."
            )
        self.alpha = alpha

    def assign(self, rollout: Rollout) -> Metrics:
        """Raise; log the share of tokens that plan, and their share of all credit before and after."""
        old_size = rollout.advantages.abs()
        rollout.advantages = hicra_advantages(rollout.advantages, rollout.plan_mask, self.alpha)
        plan, shares = rollout.mask & rollout.plan_mask, []
        for size in (old_size, rollout.advantages.abs()):
            total = masked_sum(size, rollout.mask)
            shares.append((masked_sum(size, plan) / total).where(total > 0, 0))
        return {
            "plan_fraction": masked_mean(rollout.plan_mask.float(), rollout.mask),
            "plan_credit_before": shares[0],
            "plan_credit": shares[1],
        }

    def bound(self, limit: float, group_size: int) -> float:
        """A planning token may gain alpha of what it has."""
        return (1 + self.alpha) * limit
