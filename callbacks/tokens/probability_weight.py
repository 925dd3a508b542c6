"""Probability weight: unlikely tokens get less credit, since their gradients are the largest."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean


def probability_weights(old_logprobs: Tensor, alpha: float) -> Tensor:
    r"""Return a weight that falls with the probability of the sampled token, from 1 to :math:`1 - \alpha`.

    .. math:: w_t = \alpha\, \pi(o_t) + 1 - \alpha

    Advantage reweighting of Yang et al. (2025, arXiv:2505.12929).

    Args:
        old_logprobs: Log-probability of the sampled token when it was drawn, shape ``(B, T)``.
        alpha: Share of the weight that is the probability, in [0, 1]; 0 gives every token the weight 1.

    Returns:
        Shape ``(B, T)``.

    Example:
        >>> import torch
        >>> probability_weights(torch.tensor([1.0, 0.5, 0.0]).log(), alpha=0.2)
        tensor([1.0000, 0.9000, 0.8000])

    """
    return alpha * old_logprobs.exp() + (1 - alpha)


class ProbabilityWeight(CreditOperator, reads="advantages old_logprobs", writes="advantages", neutral={"alpha": 0.0}):
    """Multiply advantages by :func:`probability_weights`.

    Args:
        alpha: Share of the weight that is the probability. The authors' script for logic puzzles has 0.2.

    """

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        if not 0 <= alpha <= 1:
            raise ValueError(f"ProbabilityWeight expects alpha in [0, 1], got {alpha}. Beyond, signs would flip.")
        self.alpha = alpha

    def assign(self, rollout: Rollout) -> Metrics:
        """Weight; log the mean weight over tokens, and over tokens with credit by its size."""
        weights, old_credit = probability_weights(rollout.old_logprobs, self.alpha), rollout.advantages
        rollout.advantages = old_credit * weights
        size = masked_mean(old_credit.abs(), rollout.mask)
        size_ratio = masked_mean(rollout.advantages.abs(), rollout.mask) / size
        return {"weight_mean": masked_mean(weights, rollout.mask), "credit_fraction": size_ratio.where(size > 0, 1.0)}

    def bound(self, limit: float, group_size: int) -> float:
        """No weight exceeds one."""
        return limit
