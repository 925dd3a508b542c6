"""TACO: right answers praise their implausible tokens less."""

import math

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean


def tail_weights(old_logprobs: Tensor, entropy: Tensor, alpha: float, strength: float) -> Tensor:
    r"""Weight tokens that are much less likely than the policy's entropy would have it.

    .. math:: w_t = 1 - \lambda \bigl(1 - e^{-\max(0,\, r_t)}\bigr), \qquad r_t = -\log \pi(o_t) - H_t + \log \alpha

    Tail-aware credit calibration (2026, arXiv:2607.07976), after its authors' code.

    Args:
        old_logprobs: Log-probability of the sampled token when it was drawn, shape ``(B, T)``.
        entropy: Entropy of the distribution the token was drawn from, in nats, shape ``(B, T)``.
        alpha: Tail threshold: a token is in the tail if its probability is below alpha times exp(-H).
        strength: Share lambda of the credit that the most implausible token loses.

    Returns:
        In [1 - strength, 1], shape ``(B, T)``.

    Example:
        >>> import torch
        >>> tail_weights(torch.tensor([0.5, 0.005]).log(), torch.zeros(2), alpha=0.01, strength=0.9)
        tensor([1.0000, 0.5500])

    """
    tail = (-old_logprobs - entropy + math.log(alpha)).clamp(min=0)
    return 1 + strength * (-tail).expm1()


class TACO(CreditOperator, reads="advantages entropy old_logprobs", writes="advantages", neutral={"strength": 0.0}):
    """Multiply positive advantages by :func:`tail_weights`.

    Args:
        alpha: Tail threshold: a token is in the tail if its probability is below alpha times exp(-H). The authors use
            0.01.
        strength: Share of the credit that the most implausible token loses; 0 is the identity. The authors use 0.9.

    """

    def __init__(self, alpha: float = 0.01, strength: float = 0.9) -> None:
        super().__init__()
        if not (alpha > 0 and 0 <= strength <= 1):
            raise ValueError(f"TACO expects alpha > 0 and strength in [0, 1], got {alpha} and {strength}.")
        self.alpha, self.strength = alpha, strength

    def assign(self, rollout: Rollout) -> Metrics:
        """Weight; log the share of positively credited tokens in the tail, and their mean weight."""
        weights = tail_weights(rollout.old_logprobs, rollout.entropy, self.alpha, self.strength)
        praise = rollout.mask & (rollout.advantages > 0)
        tail = tail_weights(rollout.old_logprobs, rollout.entropy, self.alpha, 1.0) < 1
        rollout.advantages = (rollout.advantages * weights).where(praise, rollout.advantages)
        return {"tail_fraction": masked_mean(tail.float(), praise), "weight_mean": masked_mean(weights, praise)}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows."""
        return limit
