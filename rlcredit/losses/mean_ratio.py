"""Mean ratio: one importance ratio per completion, the arithmetic mean of its tokens'."""

from torch import Tensor

from rlcredit.formulas.masked import masked_mean
from rlcredit.losses.base import Denominator, bounded_ratio, masked_log_ratio
from rlcredit.losses.clipped_surrogate import ClippedSurrogate


class MeanRatio(ClippedSurrogate, row_wise=True):
    r"""Maximise the clipped surrogate of a completion's mean ratio, the loss of GRPO-S.

    .. math:: \hat w_i = \frac{1}{T_i} \sum_t \rho_{i,t}, \qquad
        J = \frac{1}{B} \sum_i \min\bigl(\hat w_i A_i,\; \operatorname{clip}(\hat w_i, 1 - \epsilon_{low},
        1 + \epsilon_{high}) A_i\bigr)

    Tan et al. (2025, arXiv:2508.04349). It is meant for one advantage per completion; with an advantage per token every
    token's meets the same ratio. GSPO takes the geometric mean.

    Args:
        low: How far a ratio may fall below one.
        high: How far a ratio may rise above one.
        denominator: How tokens are averaged: ``token``, ``sequence``, as in the formula, or ``constant``.
        constant: Tokens per completion that ``constant`` divides by; else None.

    """

    def __init__(
        self,
        low: float = 0.2,
        high: float = 0.28,
        denominator: Denominator = "sequence",
        constant: int | None = None,
    ) -> None:
        super().__init__(low, high, denominator=denominator, constant=constant)

    def ratio(self, logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
        """Return each completion's mean ratio on every token, shape ``(B, T)``."""
        ratio = bounded_ratio(masked_log_ratio(logprobs, old_logprobs, mask))
        return masked_mean(ratio, mask, dim=-1, keepdim=True).where(mask, 1)
