"""RSI mask: only tokens whose surprisal is close to the policy's entropy receive credit."""

import math

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean


def relative_surprisal(old_logprobs: Tensor, entropy: Tensor, eps: float = 1e-6) -> Tensor:
    r"""Return surprisal over entropy; on policy its expectation is one.

    .. math:: RSI_t = \frac{-\log \pi(o_t)}{H_t + \epsilon}

    Lv et al. (2026, arXiv:2606.31575).

    Args:
        old_logprobs: Log-probability of the sampled token when it was drawn, shape ``(B, T)``.
        entropy: Entropy of the distribution the token was drawn from, in nats, shape ``(B, T)``.
        eps: Number added to the entropy, so that a certain token gets zero.

    Returns:
        Shape ``(B, T)``.

    Example:
        >>> import torch
        >>> p = torch.tensor([0.5, 0.3, 0.2])
        >>> relative_surprisal(p.log(), (-p * p.log()).sum().expand(3)).round(decimals=3)
        tensor([0.6730, 1.1690, 1.5630])

    """
    return -old_logprobs / (entropy + eps)


class RSIMask(
    CreditOperator, reads="advantages entropy old_logprobs", writes="advantages", neutral={"low": 0.0, "high": math.inf}
):
    """Erase the advantages where :func:`relative_surprisal` lies outside an interval.

    We do not have the paper's interval; the default is a third party's.

    Args:
        low: Smallest ratio kept; 0 keeps every certain token.
        high: Largest ratio kept; infinity keeps every surprise.
        eps: Number added to the entropy.

    """

    def __init__(self, low: float = 0.1, high: float = 3.0, eps: float = 1e-6) -> None:
        super().__init__()
        if not (0 <= low < high and eps > 0):
            raise ValueError(f"RSIMask expects 0 <= low < high and eps > 0, got {low}, {high} and {eps}.")
        self.low, self.high, self.eps = low, high, eps

    def assign(self, rollout: Rollout) -> Metrics:
        """Mask; log the mean index, one if sampler and entropy agree, and the shares erased on either side."""
        index = relative_surprisal(rollout.old_logprobs, rollout.entropy, self.eps)
        sides = {"low_fraction": index < self.low, "high_fraction": index > self.high}
        rollout.advantages = rollout.advantages.where(~(sides["low_fraction"] | sides["high_fraction"]), 0)
        uncertain = rollout.mask & (rollout.entropy > math.sqrt(self.eps))
        erased_shares = {name: masked_mean(selection.float(), rollout.mask) for name, selection in sides.items()}
        return {"index_mean": masked_mean(index, uncertain), **erased_shares}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows."""
        return limit
