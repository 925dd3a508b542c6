"""Gates between 0 and 1 on the credit of tokens: their temperature, and statistics of their effect."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from rlcredit.formulas.distributed import gather_over_processes
from rlcredit.formulas.masked import masked_mean, variance_within_between

NEUTRAL_EDGE = math.log(0.6 / 0.4)
"""Argument at which a sigmoid leaves [0.4, 0.6], the neutral band."""


Blend = float | Literal["lambda"]
"""How much of a gate is applied: a share, or the lambda of the schedule above."""


@dataclass(frozen=True)
class AdaptiveEta:
    r"""The temperature at which ``share`` of the tokens have a neutral gate, smoothed over steps.

    .. math:: \eta = \operatorname{quantile}_{share}(|\chi|) / \ln 1.5, \qquad \sigma(\chi / \eta) \in [0.4, 0.6]

    Args:
        share: Share of the tokens with an advantage whose gate should be neutral, in (0, 1).
        decay: Decay of the moving average over steps, in [0, 1).
        low: Smallest eta of a batch.
        high: Largest eta of a batch; also used until some batch has an advantage.

    """

    share: float = 0.5
    decay: float = 0.0
    low: float = 0.05
    high: float = 5.0

    def __post_init__(self) -> None:
        """Refuse shares, decays and bounds out of range."""
        if not 0 < self.share < 1 or not 0 <= self.decay < 1 or not 0 < self.low <= self.high:
            raise ValueError(f"AdaptiveEta expects share and decay in [0, 1) and 0 < low <= high, got {self}.")

    def next_eta(self, old_eta: float | None, delight: Tensor, credit_mask: Tensor) -> float | None:
        r"""Return the next value of the moving average; a batch without any advantage leaves it unchanged.

        Args:
            old_eta: Eta of the step before; None before the first.
            delight: :math:`\chi`, advantage times surprisal, shape ``(B, T)``.
            credit_mask: Tokens that have an advantage, shape ``(B, T)``; those of all processes count.

        """
        sizes = gather_over_processes(delight.abs()[credit_mask])[0].sort().values
        if not len(sizes):
            return old_eta
        quantile = sizes[math.ceil(self.share * len(sizes)) - 1].item()
        eta = min(max(quantile / NEUTRAL_EDGE, self.low), self.high)
        return eta if old_eta is None else self.decay * old_eta + (1 - self.decay) * eta


Eta = float | AdaptiveEta
"""A temperature, or how to find one in every batch."""


def gate_statistics(gate: Tensor, weights: Tensor, advantages: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Describe a gate over the tokens that have credit; means over no tokens are one half, the neutral value.

    Args:
        gate: Gate of each token in [0, 1], shape ``(B, T)``.
        weights: Factor by which the gate multiplied the credit, shape ``(B, T)``.
        advantages: Advantages before the gate, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    Returns:
        Mean, and mean over positive and over negative advantages; shares of suppressed (below 0.2), neutral (0.4 to
        0.6), breakthrough (above 0.8) and saturated (within 0.01 of 0 or 1) tokens; the deviation of the weights inside
        completions and between them: a gate without the first only rescales rollouts.

    """
    credit_mask = mask & (advantages != 0)
    inner_variance, between = variance_within_between(weights, credit_mask)
    means = {
        "gate_mean": credit_mask,
        "gate_positive_mean": credit_mask & (advantages > 0),
        "gate_negative_mean": credit_mask & (advantages < 0),
    }
    shares = {
        "suppressed_fraction": gate < 0.2,
        "neutral_fraction": (gate >= 0.4) & (gate <= 0.6),
        "breakthrough_fraction": gate > 0.8,
        "saturated_fraction": (gate - 0.5).abs() > 0.49,
    }
    return {
        **{name: torch.where(selection.any(), masked_mean(gate, selection), 0.5) for name, selection in means.items()},
        **{name: masked_mean(selection.float(), credit_mask) for name, selection in shares.items()},
        "weight_deviation_within": inner_variance.sqrt(),
        "weight_deviation_between": between.sqrt(),
    }
