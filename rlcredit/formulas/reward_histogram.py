"""Rewards as histograms: what a critic predicts when it learns by cross-entropy."""

from dataclasses import dataclass

import torch
from torch import Tensor


class RewardRangeError(ValueError):
    """A reward lies outside the range of a histogram."""


@dataclass
class RewardHistogram:
    r"""Bins in which the reward is predicted, with Gaussian smoothing (HL-Gauss).

    Two bins without smoothing are right and wrong, and the loss is binary cross-entropy. More bins with a deviation of
    0.75 are HL-Gauss of Farebrother et al. (2024, arXiv:2403.03950). The bins reach three deviations beyond the
    rewards, so that a smoothed reward keeps its mean.

    Args:
        bins: Number of bins K.
        smoothing: Deviation of the Gaussian, in bins; 0 divides a reward between the two bins beside it.
        low: Smallest reward.
        high: Largest reward.

    """

    bins: int = 2
    smoothing: float = 0.0
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        """Refuse too few bins and an empty range."""
        if not (self.smoothing >= 0 and self.bins > 1 + 6 * self.smoothing and self.low < self.high):
            raise ValueError(
                "RewardHistogram expects smoothing >= 0, more than 1 + 6 smoothing bins and low < high, got "
                f"{self.bins} bins, smoothing {self.smoothing:g} and {self.low:g} to {self.high:g}."
            )

    @property
    def centres(self) -> Tensor:
        """Middle of each bin, shape ``(K,)``."""
        width = (self.high - self.low) / (self.bins - 1 - 6 * self.smoothing)
        beyond = 3 * self.smoothing * width
        return torch.linspace(self.low - beyond, self.high + beyond, self.bins)

    def shares(self, rewards: Tensor) -> Tensor:
        """Return the share of each reward in each bin, shape ``(N, K)``.

        Args:
            rewards: Rewards from ``low`` to ``high``, shape ``(N,)``.

        Raises:
            RewardRangeError: a reward lies outside.

        Example:
            >>> RewardHistogram().shares(torch.tensor([1.0, 0.25]))
            tensor([[0.0000, 1.0000],
                    [0.7500, 0.2500]])

        """
        if len(rewards) and not (self.low - 1e-6 <= rewards.min() and rewards.max() <= self.high + 1e-6):
            raise RewardRangeError(
                f"Rewards lie from {rewards.min():g} to {rewards.max():g}, the critic's histogram from {self.low:g} to "
                f"{self.high:g}. Set its target: {{low: ..., high: ...}}."
            )
        centres = self.centres.to(rewards.device)
        distance = (rewards[:, None] - centres) / (centres[1] - centres[0])
        if not self.smoothing:
            return (1 - distance.abs()).clamp(min=0)
        upper = torch.special.ndtr((0.5 - distance) / self.smoothing)
        lower = torch.special.ndtr((-0.5 - distance) / self.smoothing)
        return (upper - lower) / (upper - lower).sum(-1, keepdim=True)

    def mean(self, logits: Tensor) -> Tensor:
        """Return the mean reward of predicted histograms, shape ``(N,)``; logits are ``(N, K)``."""
        return logits.softmax(-1) @ self.centres.to(logits.device)
