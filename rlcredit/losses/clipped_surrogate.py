"""Clipped surrogate: PPO's objective, with DAPO's higher upper clip and the dual clip."""

import math
from typing import Any

import torch
from torch import Tensor

from rlcredit.formulas.masked import masked_mean
from rlcredit.losses.base import Denominator, PolicyLoss, bounded_ratio, masked_log_ratio


def clipped_surrogate(
    ratio: Tensor, advantages: Tensor, low: float = 0.2, high: float = 0.2, dual: float = math.inf
) -> Tensor:
    r"""Return the pessimistic surrogate of each token.

    .. math:: \min\bigl(\rho A,\; \operatorname{clip}(\rho, 1 - \epsilon_{low}, 1 + \epsilon_{high}) A\bigr),
        \qquad \text{at least } c A \text{ where } A < 0

    Schulman et al. (2017, arXiv:1707.06347); :math:`\epsilon_{high} > \epsilon_{low}` is DAPO's clip-higher (Yu et al.,
    2025, arXiv:2503.14476); c is the dual clip (Ye et al., 2020, arXiv:1912.09729). The gradient vanishes where a good
    token is already likelier than 1 + high, where a bad one is already less likely than 1 - low, and where a bad one is
    likelier than c.

    Args:
        ratio: Ratio pi / pi_old, any shape.
        advantages: Advantages, same shape.
        low: How far a ratio may fall below one; 1 never clips.
        high: How far a ratio may rise above one; infinity never clips.
        dual: Dual bound c > 1; infinity never clips.

    Returns:
        Same shape.

    Example:
        >>> clipped_surrogate(torch.tensor([1.5, 1.5, 0.5, 9.0]), torch.tensor([1.0, -1.0, -1.0, -1.0]), dual=3.0)
        tensor([ 1.2000, -1.5000, -0.8000, -3.0000])

    """
    surrogate = torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)
    return torch.maximum(surrogate, (dual * advantages).where(advantages < 0, -math.inf))


class ClippedSurrogate(PolicyLoss, row_wise=True):
    """Maximise :func:`clipped_surrogate`.

    PPO and GRPO: the defaults. DAPO: ``high: 0.28``. It clips nothing while a rollout is used for one update only. A
    ratio above e^80 counts as e^80 and has no gradient, as float32 holds none beyond e^88.

    Args:
        low: How far a ratio may fall below one.
        high: How far a ratio may rise above one.
        dual: Bound on the ratio of tokens with negative advantage; verl uses 3.
        denominator: How tokens are averaged: ``token``, ``sequence`` or ``constant``.
        constant: Tokens per completion that ``constant`` divides by; else None.

    """

    def __init__(
        self,
        low: float = 0.2,
        high: float = 0.2,
        dual: float = math.inf,
        denominator: Denominator = "token",
        constant: int | None = None,
    ) -> None:
        super().__init__(denominator, constant)
        if not (0 <= low <= 1 and high >= 0 and dual > 1):
            raise ValueError(
                f"{type(self).__name__} expects 0 <= low <= 1, high >= 0 and dual > 1, got {low}, {high} and {dual}."
            )
        self.low, self.high, self.dual = low, high, dual

    def ratio(self, logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
        """Return the ratio that is clipped, shape ``(B, T)``."""
        return bounded_ratio(masked_log_ratio(logprobs, old_logprobs, mask))

    def objective(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> Tensor:
        """Return the clipped surrogate."""
        ratio = self.ratio(logprobs, old_logprobs, mask)
        return clipped_surrogate(ratio, advantages, self.low, self.high, self.dual)

    def token_objective(self, logprobs: Tensor, old_logprobs: Tensor, credit: Tensor) -> Tensor:
        """Return the clipped surrogate of each token's own ratio."""
        return clipped_surrogate(bounded_ratio(logprobs - old_logprobs), credit, self.low, self.high, self.dual)

    def metrics(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> dict[str, Tensor]:
        """Return the shares of tokens whose gradient each of the three bounds takes away."""
        cut = self.clip_masks(self.ratio(logprobs, old_logprobs, mask), advantages)
        return {name: masked_mean(is_cut.float(), mask) for name, is_cut in cut.items()}

    def clip_masks(self, ratio: Tensor, advantages: Tensor) -> dict[str, Tensor]:
        """Return masks of the tokens whose gradient each of the three bounds takes away, shapes ``(B, T)`` bool."""
        return {
            "clipped_high": (advantages > 0) & (ratio > 1 + self.high),
            "clipped_low": (advantages < 0) & (ratio < 1 - self.low),
            "clipped_dual": (advantages < 0) & (ratio > self.dual),
        }
