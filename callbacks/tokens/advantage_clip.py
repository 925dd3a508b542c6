"""Advantage clipping: no token's advantage may exceed a limit in size."""

import math

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import sum_over_processes
from rlcredit.formulas.masked import masked_mean


def clipped_advantages(advantages: Tensor, limit: float) -> Tensor:
    r"""Clip advantages to ``[-limit, limit]``.

    With r in {0, 1} and mean-only GRPO, :math:`|A| \le (G-1)/G`: any limit of one or more changes nothing.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        limit: Largest absolute advantage allowed; infinity is the identity.

    Example:
        >>> import torch
        >>> clipped_advantages(torch.tensor([[0.0, 15.0, -1.0, 7.0]]), limit=5.0)
        tensor([[ 0.,  5., -1.,  5.]])

    """
    return advantages.clamp(-limit, limit)


class AdvantageClip(CreditOperator, reads="advantages", writes="advantages", neutral={"limit": math.inf}):
    """Apply :func:`clipped_advantages` to the ledger.

    Args:
        limit: Largest absolute advantage allowed.

    """

    def __init__(self, limit: float = math.inf) -> None:
        super().__init__()
        if not limit > 0:
            raise ValueError(f"AdvantageClip expects limit > 0, got {limit}. A limit of zero would erase all credit.")
        self.limit = limit

    def assign(self, rollout: Rollout) -> Metrics:
        """Clip; log the share of credited tokens it touched, their mean size before, and whether there were any."""
        old_credit, rollout.advantages = rollout.advantages, clipped_advantages(rollout.advantages, self.limit)
        clip_mask = (old_credit.abs() > self.limit) & rollout.mask
        return {
            "clipped_fraction": masked_mean(clip_mask.float(), rollout.mask & (old_credit != 0)),
            "clipped_magnitude": masked_mean(old_credit.abs(), clip_mask),
            "triggered": (sum_over_processes(clip_mask.sum()) > 0).float(),
        }

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing larger than the limit leaves."""
        return min(limit, self.limit)

    def notice(self, limit: float, group_size: int) -> str | None:
        """A cap above everything that can arrive changes nothing."""
        if self.limit < limit:
            return None
        return (
            f"AdvantageClip(limit={self.limit:g}) changes nothing: with rewards in [0, 1] and {group_size} completions "
            f"per prompt, |A| <= {limit:g} above it. Lower the limit, or remove it."
        )
