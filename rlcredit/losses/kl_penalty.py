"""KL penalty: any loss, plus the divergence from the reference policy."""

from typing import Any, Literal

from torch import Tensor

from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.losses.base import AddedTerm, PolicyLoss
from rlcredit.losses.importance_sampling import ImportanceSampling

Estimator = Literal["k2", "k3"]


def kl_estimate(logprobs: Tensor, other: Tensor, estimator: Estimator = "k3") -> Tensor:
    r"""Estimate KL(pi || other) from the sampled token alone, as a loss whose gradient points back to ``other``.

    .. math:: k_3 = e^{d} - d - 1, \qquad k_2 = d^2 / 2, \qquad d = \log \pi_{other}(o) - \log \pi_\theta(o)

    k3 is GRPO's (Shao et al., 2024, arXiv:2402.03300), unbiased in value; k2's expected gradient is that of the
    divergence itself. The plain log-ratio is not offered: as a loss its expected gradient is zero.

    Args:
        logprobs: Log pi with graph, any shape.
        other: Log-probability under the other policy, same shape.
        estimator: ``k2`` or ``k3``.

    Returns:
        Non-negative, same shape. Differences of more than 20 nats count as 20, and have no gradient.

    Example:
        >>> import torch
        >>> kl_estimate(torch.tensor([-1.0, -1.0]), torch.tensor([-1.0, -2.0]))
        tensor([0.0000, 0.3679])

    """
    difference = (other - logprobs).clamp(-20, 20)
    if require_choice("kl_estimate", "estimator", estimator, ("k2", "k3")) == "k2":
        return difference**2 / 2
    return difference.expm1() - difference


class KLPenalty(AddedTerm, needs="ref_logprobs", row_wise=True):
    """Add ``beta`` times :func:`kl_estimate` to the reference, the adapter switched off; averaged as the loss is.

    Args:
        loss: Loss that the penalty is added to; importance sampling if None.
        beta: Strength of the penalty; 0 leaves the loss as it is. DeepSeekMath uses 0.04.
        estimator: ``k2`` or ``k3``.

    """

    def __init__(self, loss: PolicyLoss | None = None, beta: float = 0.04, estimator: Estimator = "k3") -> None:
        super().__init__(loss or ImportanceSampling(), beta, "drive the policy away")
        self.estimator: Estimator = require_choice("KLPenalty", "estimator", estimator, ("k2", "k3"))

    def term(self, logprobs: Tensor, mask: Tensor, *, ref_logprobs: Tensor, **facts: Any) -> Tensor:
        """Return minus the estimate."""
        return -kl_estimate(logprobs.where(mask, 0), ref_logprobs.where(mask, 0), self.estimator)

    def term_metrics(self, term: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Return the mean estimate."""
        return {"kl_reference": masked_mean(-term, mask)}
