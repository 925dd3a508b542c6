"""SIS: stale tokens that pass a rejection test count as fresh; the others keep their clipped ratio."""

from typing import Any

from torch import Tensor

from rlcredit.formulas.masked import masked_mean
from rlcredit.losses.base import Denominator, bounded_ratio, masked_log_ratio
from rlcredit.losses.clipped_surrogate import ClippedSurrogate, clipped_surrogate


class SIS(ClippedSurrogate, needs="token_uniforms", row_wise=True):
    r"""Maximise the clipped surrogate with a ratio of one on tokens that pass a rejection test.

    .. math:: u \sim U[0, 1), \qquad \rho' = \begin{cases} 1 & u < a \\ \rho & \text{otherwise} \end{cases}, \qquad
        a = \min(1, \rho / M)

    Selective importance sampling, Li et al. (2026, arXiv:2607.04728): a reconstruction from its abstract and the
    authors' README, which say that rejected tokens keep their ratio and its clip. Their M is the largest ratio among
    the 100 likeliest tokens of the old policy at the place, if others retell Algorithm 1 rightly; here M is a constant,
    because an update knows the probabilities of sampled tokens only.

    An accepted token has the gradient of REINFORCE, and no clip stops it. Clips of the others aside, the weight of a
    token's score is :math:`\rho + a (1 - \rho)` in expectation, which leaves a bias of

    .. math:: \sum_v \pi_{old}(v)\, a_v\, (1 - \rho_v)\, A_v\, \nabla \log \pi_\theta(v)

    beside the one of all ratios of single tokens, whose prefixes are the old policy's. With M = 1 the expected weight
    is :math:`1 - (1 - \rho)^2` below a ratio of one and 1 above: to first order, nothing is corrected. A larger M
    accepts less and lowers the bias. If rejected tokens were dropped, the expected gradient would be the one of
    ``CISPO(cap=1)``. At a ratio of one, the gradient is the one of :class:`ImportanceSampling`, whatever M is.

    Args:
        envelope: Bound M on the ratio; infinity accepts nothing and is the clipped surrogate.
        low: How far the ratio of a rejected token may fall below one.
        high: How far it may rise above one; with M = 1 none of them does.
        denominator: How tokens are averaged: ``token``, ``sequence`` or ``constant``.
        constant: Tokens per completion that ``constant`` divides by; else None.

    """

    def __init__(
        self,
        envelope: float = 1.0,
        low: float = 0.2,
        high: float = 0.2,
        denominator: Denominator = "token",
        constant: int | None = None,
    ) -> None:
        super().__init__(low, high, denominator=denominator, constant=constant)
        if not envelope >= 1:
            raise ValueError(f"SIS expects envelope >= 1, got {envelope}. On policy every ratio is one.")
        self.envelope = envelope

    def selected_ratio(
        self, logprobs: Tensor, old_logprobs: Tensor, mask: Tensor, token_uniforms: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the ratio, one where the token is accepted, and the mask of accepted tokens, shapes ``(B, T)``."""
        log_ratio = masked_log_ratio(logprobs, old_logprobs, mask)
        constant = log_ratio.detach()
        acceptance = mask & (token_uniforms.to(mask.device) < bounded_ratio(constant) / self.envelope)
        return bounded_ratio(log_ratio - constant.where(acceptance, 0)), acceptance

    def objective(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> Tensor:
        """Return the clipped surrogate of the selected ratio."""
        ratio, _ = self.selected_ratio(logprobs, old_logprobs, mask, facts["token_uniforms"])
        return clipped_surrogate(ratio, advantages, self.low, self.high)

    def metrics(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> dict[str, Tensor]:
        """Return the share of tokens with credit that are accepted, beside the clipped tokens."""
        ratio, acceptance = self.selected_ratio(logprobs, old_logprobs, mask, facts["token_uniforms"])
        cut = self.clip_masks(ratio, advantages)
        shares = {name: masked_mean(is_cut.float(), mask) for name, is_cut in cut.items()}
        return {"accepted": masked_mean(acceptance.float(), mask & (advantages != 0)), **shares}
