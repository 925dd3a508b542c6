"""TEPO: one ratio per completion, and a KL penalty on good tokens at which entropy falls. A reconstruction."""

from typing import Any, Literal

import torch
from torch import Tensor

from rlcredit.formulas.distributed import pooled_mean_var
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.losses.base import Denominator
from rlcredit.losses.gspo import GSPO
from rlcredit.losses.kl_penalty import kl_estimate


def tepo_mask(advantages: Tensor, entropy_change: Tensor, mask: Tensor) -> Tensor:
    r"""Mark the tokens with positive advantage at which entropy falls.

    .. math:: m_{i,t} = 1[A_{i,t} > 0]\; 1[\Delta H_{i,t} < 0]

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        entropy_change: Entropy now less entropy when sampled, or anything of the same sign, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    Returns:
        Boolean, shape ``(B, T)``.

    Example:
        >>> change = torch.tensor([[-0.1, 0.1, 0.0, -0.1]])
        >>> tepo_mask(torch.tensor([[1.0, 1.0, 1.0, -1.0]]), change, torch.ones(1, 4, dtype=torch.bool))
        tensor([[ True, False, False, False]])

    """
    return (advantages > 0) & (entropy_change < 0) & mask


class TEPO(GSPO, needs="entropy old_entropy update"):
    r"""Maximise GSPO's objective with a token mean, less a KL term on the tokens of :func:`tepo_mask`.

    .. math:: \frac{1}{\sum_i T_i} \sum_{i,t} \Bigl[\min\bigl(s_i A,\, \operatorname{clip}(s_i) A\bigr)
        - \beta\, m_{i,t}\, k_3(o_{i,t})\Bigr]

    Lin et al. (2026, arXiv:2604.12736), a reconstruction: the abstract names ratio and mask, and we do not have the
    equations. Direction and reference of the divergence, its strength and the clipping bounds are assumptions,
    each a parameter. :math:`s_i` does not vary inside a completion: tokens differ by the mask alone.

    In the first update of a rollout no entropy has changed yet and the mask is empty. ``covariance`` then predicts the
    change by its sign under a policy gradient step: entropy falls where A > 0 and log pi is above the batch's mean. It
    only has an effect with ``reference: ref``, since the divergence from the sampling policy is zero there as well.

    Args:
        low: How far a completion's ratio may fall.
        high: How far a ratio may rise above one.
        beta: Strength of the divergence; 0 leaves the ratio alone.
        reference: Divergence from the policy that sampled, ``old``, or from the reference, ``ref``.
        first_update: ``none``, or ``covariance``.
        denominator: How tokens are averaged: ``token``, ``sequence`` or ``constant``.
        constant: Tokens per completion that ``constant`` divides by; else None.

    """

    def __init__(
        self,
        low: float = 3e-4,
        high: float = 4e-4,
        beta: float = 0.01,
        reference: Literal["old", "ref"] = "old",
        first_update: Literal["none", "covariance"] = "none",
        denominator: Denominator = "token",
        constant: int | None = None,
    ) -> None:
        super().__init__(low, high, denominator, constant)
        if not beta >= 0:
            raise ValueError(f"TEPO expects beta >= 0, got {beta}. A negative one would drive the policy away.")
        self.beta = beta
        self.reference = require_choice("TEPO", "reference", reference, ("old", "ref"))
        self.first_update = require_choice("TEPO", "first_update", first_update, ("none", "covariance"))
        if reference == "ref":
            self.needs = self.needs | {"ref_logprobs"}

    def kl_mask(self, logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any) -> Tensor:
        """Return the tokens on which the divergence counts, shape ``(B, T)`` bool."""
        if facts["update"]:
            change = facts["entropy"] - facts["old_entropy"]
        elif self.first_update == "covariance":
            change = (pooled_mean_var(logprobs.detach(), mask)[0] - logprobs.detach()).float()
        else:
            change = torch.zeros_like(advantages)  # still the same policy: entropies differ by rounding only
        return tepo_mask(advantages, change, mask)

    def objective(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> Tensor:
        """Return the clipped surrogate less the masked divergence."""
        reference = old_logprobs if self.reference == "old" else facts["ref_logprobs"]
        divergence = kl_estimate(logprobs.where(mask, 0), reference.where(mask, 0))
        surrogate = super().objective(logprobs, old_logprobs, advantages, mask)
        return surrogate - self.beta * divergence.where(self.kl_mask(logprobs, advantages, mask, **facts), 0)

    def metrics(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> dict[str, Tensor]:
        """Return the share of penalised tokens beside the clipped ones."""
        penalty_mask = self.kl_mask(logprobs, advantages, mask, **facts)
        clip_metrics = super().metrics(logprobs, old_logprobs, advantages, mask)
        return {**clip_metrics, "reined": masked_mean(penalty_mask.float(), mask)}
