"""Gradient-size mask: only the tokens with the largest gradients receive credit."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean, masked_sum
from rlcredit.formulas.scopes import Scope, top_share_mask
from rlcredit.formulas.uncertainty import squared_score_norm


def squared_gradient_sizes(advantages: Tensor, old_logprobs: Tensor, sum_pi_squared: Tensor) -> Tensor:
    r"""Return the squared norm of a token's policy gradient with respect to the logits.

    .. math:: \lVert A_t \nabla \log \pi(o_t) \rVert^2 = A_t^2 \bigl(1 - 2 \pi(o_t) + \textstyle\sum_v \pi(v)^2\bigr)

    The paper approximates it by entropy times :math:`|A|`; this is exact.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        old_logprobs: Log-probability of the sampled token when it was drawn, shape ``(B, T)``.
        sum_pi_squared: Sum of squared probabilities of the distribution the token was drawn from, shape ``(B, T)``.

    Returns:
        Shape ``(B, T)`` float64.

    Example:
        >>> import torch
        >>> fair = torch.tensor([0.5])
        >>> squared_gradient_sizes(torch.tensor([2.0]), fair.log(), fair).round(decimals=3)
        tensor([2.], dtype=torch.float64)

    """
    return advantages.double() ** 2 * squared_score_norm(old_logprobs.double(), sum_pi_squared)


class GradientSizeMask(
    CreditOperator,
    reads="advantages judged old_logprobs sum_pi_squared",
    writes="advantages",
    neutral={"share": 1.0},
):
    """Erase the advantages outside the share of tokens with the largest :func:`squared_gradient_sizes`.

    GMTS (arXiv:2608.30632). Among equal sizes the first win.

    Args:
        share: Share of tokens kept, in (0, 1]; 1 keeps every token.
        scope: Tokens among which sizes are compared.

    """

    def __init__(self, share: float = 0.2, scope: Scope = "batch") -> None:
        super().__init__()
        if not 0 < share <= 1:
            raise ValueError(f"GradientSizeMask expects share in (0, 1], got {share}. It is the share of tokens kept.")
        self.share = share
        self.scope: Scope = scope

    def assign(self, rollout: Rollout) -> Metrics:
        """Mask; log the share of tokens asked for and kept, and of the sum of squared sizes that they hold."""
        sizes = squared_gradient_sizes(rollout.advantages, rollout.old_logprobs, rollout.sum_pi_squared)
        mask = rollout.judged_mask
        selection = top_share_mask(sizes, mask, self.share, self.scope, rollout.group_size)
        rollout.advantages = rollout.advantages.where(selection, 0)
        total = masked_sum(sizes, mask)
        return {
            "requested_fraction": self.share,
            "kept_fraction": masked_mean(selection.float(), mask),
            "size_fraction": (masked_sum(sizes, selection) / total).where(total > 0, 1.0),
        }

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows."""
        return limit
