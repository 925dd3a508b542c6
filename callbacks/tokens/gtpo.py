"""GTPO: more credit to the tokens at which the policy was undecided."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean, masked_var

NEGLIGIBLE_UNCERTAINTY = 1e-7
"""Mean uncertainty, in nats, below which a completion has none: that of one certain token is rounding of this size."""


def gtpo_weights(signal: Tensor, mask: Tensor, beta: float) -> Tensor:
    r"""Weight each token by its uncertainty relative to its own completion.

    .. math:: w_t = \max\bigl(0,\; 1 + \beta\,(S_t / \bar S - 1)\bigr)

    The multiplicative variant of Tan et al. (2025, arXiv:2508.04349) that the SEPA paper uses. Before the clamp the
    weights of a completion average to one: credit moves between tokens, none is added. With a non-negative signal no
    weight is below 1 - beta, so that the clamp acts for beta > 1 only. Only a constant factor of the signal cancels.

    Args:
        signal: Per-token uncertainty, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        beta: Strength; 0 gives every token the same weight.

    Returns:
        Non-negative weights, shape ``(B, T)``; one wherever the completion carries no uncertainty.

    Example:
        >>> import torch
        >>> gtpo_weights(torch.tensor([[0.1, 0.3, 0.8]]), torch.ones(1, 3, dtype=torch.bool), beta=0.5)
        tensor([[0.6250, 0.8750, 1.5000]])

    """
    mean = masked_mean(signal, mask, dim=-1, keepdim=True)
    relative = (signal / mean).where(mean > NEGLIGIBLE_UNCERTAINTY, 1.0)
    return (1 + beta * (relative - 1)).clamp(min=0)


class GTPO(CreditOperator, reads="signal advantages", writes="advantages", neutral={"beta": 0.0}):
    """Multiply the advantages by :func:`gtpo_weights`.

    Args:
        beta: Strength of the reweighting. The SEPA paper uses 0.1.

    """

    def __init__(self, beta: float = 0.1) -> None:
        super().__init__()
        if not beta >= 0:
            raise ValueError(f"GTPO expects beta >= 0, got {beta}. A negative beta would reward certainty.")
        self.beta = beta

    def assign(self, rollout: Rollout) -> Metrics:
        """Reweight; log how far the weights leave one, whether the clamp acts, and completions without uncertainty."""
        weights = gtpo_weights(rollout.signal, rollout.mask, self.beta)
        rollout.advantages = rollout.advantages * weights
        flat = masked_mean(rollout.signal, rollout.mask, dim=-1) <= NEGLIGIBLE_UNCERTAINTY
        token_weights = weights[rollout.mask] if rollout.mask.any() else weights.new_ones(1)
        return {
            "weight_min": token_weights.min(),
            "weight_max": token_weights.max(),
            "weight_mean": token_weights.mean(),
            "weight_deviation": masked_var(weights, rollout.mask).sqrt(),
            "zero_weight_fraction": (token_weights == 0).float().mean(),
            "flat_completions": flat.float().mean(),
        }
