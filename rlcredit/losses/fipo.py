"""FIPO: a token's credit grows with how much likelier it and the tokens after it have become."""

import math
from typing import Any

import torch
from torch import Tensor

from rlcredit.formulas.masked import masked_mean
from rlcredit.losses.base import Denominator, bounded_ratio, masked_log_ratio
from rlcredit.losses.clipped_surrogate import ClippedSurrogate


def future_influence(change: Tensor, mask: Tensor, half_life: float, outlier: float = math.inf) -> Tensor:
    r"""Return the discounted change of log-probability from each token to the end of its completion.

    .. math:: F_t = \sum_{k \ge t} \gamma^{k-t}\, 1[\rho_k \le \rho_{max}]\, \log \rho_k, \qquad
        \gamma = 2^{-1/h}

    Args:
        change: Change log pi - log pi_old, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        half_life: Half-life h, in tokens.
        outlier: Ratio above which tokens do not count.

    Returns:
        Shape ``(B, T)``, detached.

    Example:
        >>> future_influence(torch.tensor([[1.0, 1.0, 1.0]]), torch.ones(1, 3, dtype=torch.bool), half_life=1)
        tensor([[1.7500, 1.5000, 1.0000]])

    """
    counted_change = change.detach().where(mask & (change.detach() <= math.log(outlier)), 0)
    gamma, influence = 2 ** (-1 / half_life), torch.zeros_like(counted_change[:, 0])
    columns = []
    for column, is_sampled in zip(reversed(counted_change.unbind(-1)), reversed(mask.unbind(-1)), strict=True):
        influence = torch.where(is_sampled, column + gamma * influence, influence)
        columns.append(influence)
    return torch.stack(columns[::-1], -1)


class FIPO(ClippedSurrogate, row_wise=True):
    r"""Maximise the clipped surrogate of :math:`A_t \operatorname{clip}(e^{F_t},\, f_{low},\, f_{high})`.

    Ma et al. (2026, arXiv:2603.19835), as implemented in ms-swift; F is :func:`future_influence`. A bad token that has
    become much likelier is never punished more. In the first update of a rollout the weight is one.

    Args:
        half_life: Half-life of the discount, in tokens.
        weight_low: Smallest weight; the one-sided variant is 1 with 1.2.
        weight_high: Largest weight; 1 with ``weight_low`` 1 is the clipped surrogate.
        outlier: Ratio above which tokens do not count in F.
        safe: Ratio above which tokens with negative advantage have weights of at most one.
        low: How far a ratio may fall below one.
        high: How far a ratio may rise above one.
        denominator: How tokens are averaged: ``token``, ``sequence`` or ``constant``.
        constant: Tokens per completion that ``constant`` divides by; else None.

    """

    def __init__(
        self,
        half_life: float = 32.0,
        weight_low: float = 0.8,
        weight_high: float = 1.2,
        outlier: float = 10.0,
        safe: float = 4.0,
        low: float = 0.2,
        high: float = 0.28,
        denominator: Denominator = "token",
        constant: int | None = None,
    ) -> None:
        super().__init__(low, high, denominator=denominator, constant=constant)
        if not (half_life > 0 and 0 <= weight_low <= 1 <= weight_high and outlier > 0 and safe > 0):
            raise ValueError(
                f"FIPO expects half_life, outlier, safe > 0 and weight_low <= 1 <= weight_high, got {half_life}, "
                f"{outlier}, {safe}, {weight_low} and {weight_high}."
            )
        self.half_life, self.outlier, self.safe = half_life, outlier, safe
        self.weight_low, self.weight_high = weight_low, weight_high

    def influence_weights(self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
        """Return the weight of each token's advantage, shape ``(B, T)``."""
        change = masked_log_ratio(logprobs.detach(), old_logprobs, mask)
        influence = future_influence(change, mask, self.half_life, self.outlier)
        weights = bounded_ratio(influence).clamp(self.weight_low, self.weight_high)
        return weights.clamp(max=1).where((advantages < 0) & (change > math.log(self.safe)), weights)

    def objective(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> Tensor:
        """Return the clipped surrogate of the weighted advantages."""
        weighted_advantages = advantages * self.influence_weights(logprobs, old_logprobs, advantages, mask)
        return super().objective(logprobs, old_logprobs, weighted_advantages, mask)

    def metrics(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> dict[str, Tensor]:
        """Return the mean distance of the weights from one, beside the clipped tokens."""
        weights = self.influence_weights(logprobs, old_logprobs, advantages, mask)
        clip_metrics = super().metrics(logprobs, old_logprobs, advantages, mask)
        return {**clip_metrics, "influence_deviation": masked_mean((weights - 1).abs(), mask)}
