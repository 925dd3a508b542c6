"""Clip-Cov: a few tokens, drawn at random among those that would lower entropy, lose their gradient."""

import math
from typing import Any

import torch
from torch import Tensor

from rlcredit.formulas.distributed import sum_over_processes
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.scopes import top_share_mask
from rlcredit.losses.base import Denominator
from rlcredit.losses.clipped_surrogate import ClippedSurrogate
from rlcredit.losses.kl_cov import credit_covariance


class ClipCov(ClippedSurrogate, needs="token_uniforms", every_row=True):
    r"""Maximise the clipped surrogate without ``share`` of the tokens, drawn where the covariance lies in a window.

    Cui et al. (2025, arXiv:2505.22617): they are drawn among tokens with :math:`\omega_{low} < c < \omega_{high}`
    (see :func:`credit_covariance`) that the ratio has not clipped. The defaults are those of the authors' script.

    Args:
        share: Share of the batch's tokens that is left out, at least one token while there are candidates.
        window_low: Smallest covariance; infinity keeps every gradient.
        window_high: Largest covariance.
        low: How far a ratio may fall below one.
        high: How far a ratio may rise above one.
        denominator: How tokens are averaged: ``token``, ``sequence`` or ``constant``.
        constant: Tokens per completion that ``constant`` divides by; else None.

    """

    def __init__(
        self,
        share: float = 2e-4,
        window_low: float = 1.0,
        window_high: float = 5.0,
        low: float = 1.0,
        high: float = 1.0,
        denominator: Denominator = "token",
        constant: int | None = None,
    ) -> None:
        super().__init__(low, high, denominator=denominator, constant=constant)
        if not (0 < share <= 1 and (window_low < window_high or window_low == math.inf)):
            raise ValueError(
                f"ClipCov expects share in (0, 1] and window_low < window_high, got {share}, {window_low} and "
                f"{window_high}."
            )
        self.share, self.window_low, self.window_high = share, window_low, window_high

    def dropped_mask(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, token_uniforms: Tensor
    ) -> Tensor:
        """Return the tokens that lose their gradient, shape ``(B, T)`` bool."""
        covariance = credit_covariance(logprobs, advantages, mask)
        ratio = self.ratio(logprobs.detach(), old_logprobs, mask)
        is_clipped = torch.stack([*self.clip_masks(ratio, advantages).values()]).any(0)
        candidates = mask & (covariance > self.window_low) & (covariance < self.window_high) & ~is_clipped
        count = self.share * sum_over_processes(mask.sum()).item()
        share = min(1.0, count / max(1, sum_over_processes(candidates.sum()).item()))
        return top_share_mask(token_uniforms.to(mask.device), candidates, share, "batch", group_size=1)

    def objective(
        self,
        logprobs: Tensor,
        old_logprobs: Tensor,
        advantages: Tensor,
        mask: Tensor,
        *,
        token_uniforms: Tensor,
        **facts: Any,
    ) -> Tensor:
        """Return the clipped surrogate, a constant on the tokens that were drawn."""
        surrogate = super().objective(logprobs, old_logprobs, advantages, mask)
        drop_mask = self.dropped_mask(logprobs, old_logprobs, advantages, mask, token_uniforms)
        return surrogate.where(~drop_mask, 0)

    def metrics(
        self,
        logprobs: Tensor,
        old_logprobs: Tensor,
        advantages: Tensor,
        mask: Tensor,
        *,
        token_uniforms: Tensor,
        **facts: Any,
    ) -> dict[str, Tensor]:
        """Return the covariance and the share drawn beside the clipped tokens."""
        drop_mask = self.dropped_mask(logprobs, old_logprobs, advantages, mask, token_uniforms)
        return {
            **super().metrics(logprobs, old_logprobs, advantages, mask),
            "covariance": masked_mean(credit_covariance(logprobs, advantages, mask), mask),
            "drawn": masked_mean(drop_mask.float(), mask),
        }
