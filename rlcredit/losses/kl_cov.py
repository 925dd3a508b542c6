"""KL-Cov: a KL penalty on the few tokens that would lower entropy most."""

from typing import Any

from torch import Tensor

from rlcredit.formulas.distributed import pooled_mean_var
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.scopes import top_share_mask
from rlcredit.losses.base import Denominator, PolicyLoss, credited_ratio, masked_log_ratio


def credit_covariance(logprobs: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    r"""Return each token's share in the covariance of log-probability and advantage over the batch of all processes.

    .. math:: c_{i,t} = (A_{i,t} - \bar A)\,(\log \pi_{i,t} - \overline{\log \pi})

    Where it is positive the update lowers entropy (Cui et al., 2025, arXiv:2505.22617): a likely token is made
    likelier, or an unlikely one less likely.

    Args:
        logprobs: Log-probability of the sampled token, shape ``(B, T)``.
        advantages: Advantage of each token, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    Returns:
        Shape ``(B, T)`` float32, detached; zero outside the mask.

    Example:
        >>> import torch
        >>> every = torch.ones(1, 2, dtype=torch.bool)
        >>> credit_covariance(torch.tensor([[-0.5, -1.5]]), torch.tensor([[1.0, -1.0]]), every)
        tensor([[0.5000, 0.5000]])

    """
    scores, credit = logprobs.detach(), advantages.detach()
    deviations = [values.double() - pooled_mean_var(values, mask)[0] for values in (scores, credit)]
    return (deviations[0] * deviations[1]).where(mask, 0).float()


class KLCov(PolicyLoss, needs="update", every_row=True):
    r"""Maximise ratio times advantage, less ``beta`` times :math:`|\log \rho|` on the tokens of highest covariance.

    Cui et al. (2025, arXiv:2505.22617). In the first update of a rollout every ratio is one and the term is zero.

    Args:
        beta: Strength of the penalty; 0 is importance sampling. The paper uses 1.
        share: Share of the batch's tokens that are penalised, at least one token. The paper uses 2e-3 for 7B, 2e-4 for
            32B.
        denominator: How tokens are averaged: ``token``, ``sequence`` or ``constant``.
        constant: Tokens per completion that ``constant`` divides by; else None.

    """

    def __init__(
        self,
        beta: float = 1.0,
        share: float = 2e-3,
        denominator: Denominator = "token",
        constant: int | None = None,
    ) -> None:
        super().__init__(denominator, constant)
        if not (beta >= 0 and 0 < share <= 1):
            raise ValueError(f"KLCov expects beta >= 0 and share in (0, 1], got {beta} and {share}.")
        self.beta, self.share = beta, share

    def objective(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, *, update: int, **facts: Any
    ) -> Tensor:
        """Return the surrogate less the penalty."""
        change = masked_log_ratio(logprobs, old_logprobs, mask)
        surrogate = credited_ratio(change, advantages) * advantages
        if update == 0:  # |x| of a rounding error would still have a gradient of full size
            return surrogate
        steepest = top_share_mask(
            credit_covariance(logprobs, advantages, mask), mask, self.share, "batch", group_size=1
        )
        return surrogate - self.beta * change.abs().where(steepest, 0)

    def metrics(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> dict[str, Tensor]:
        """Return the covariance over the batch: how fast this update lowers entropy."""
        return {"covariance": masked_mean(credit_covariance(logprobs, advantages, mask), mask)}
