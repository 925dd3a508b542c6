"""CISPO: the ratio is a bounded weight, so that no token loses its gradient."""

import math
from typing import Any

from torch import Tensor

from rlcredit.formulas.masked import masked_mean
from rlcredit.losses.base import Denominator, PolicyLoss, credited_ratio, masked_log_ratio


class CISPO(PolicyLoss, row_wise=True):
    r"""Maximise the log-likelihood of each token, weighted by its advantage and its bounded, detached ratio.

    .. math:: L = -\sum_{i,t} c_{i,t}\; \mathrm{sg}\bigl[\min(\rho_{i,t},\, \rho_{max})\bigr]\, A_{i,t}
        \log \pi_\theta(o_{i,t})

    MiniMax-M1 (2025, arXiv:2506.13585); the bound of ScaleRL (2025, arXiv:2510.13786) is 5. An infinite one gives the
    gradient of :class:`ImportanceSampling`.

    Args:
        cap: Largest weight of a token.
        denominator: How tokens are averaged: ``token``, ``sequence`` or ``constant``.
        constant: Tokens per completion that ``constant`` divides by; else None.

    """

    def __init__(self, cap: float = 5.0, denominator: Denominator = "token", constant: int | None = None) -> None:
        super().__init__(denominator, constant)
        if not cap >= 1:
            raise ValueError(f"CISPO expects cap >= 1, got {cap}. On policy every ratio is one.")
        self.cap = cap

    def objective(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> Tensor:
        """Return the weighted log-likelihood."""
        ratio = credited_ratio(masked_log_ratio(logprobs, old_logprobs, mask).detach(), advantages)
        return ratio.clamp(max=self.cap) * advantages * logprobs.where(mask, 0)

    def metrics(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> dict[str, Tensor]:
        """Return the share of tokens whose ratio is bounded."""
        if math.isinf(self.cap):
            return {}
        is_bounded = masked_log_ratio(logprobs, old_logprobs, mask) > math.log(self.cap)
        return {"capped": masked_mean(is_bounded.float(), mask)}
