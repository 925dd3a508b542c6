"""Rewards relative to those of the same prompt."""

from torch import Tensor

ROUNDING = 1e-6
"""Below this a difference of rewards is rounding: a completion that was not judged has the mean of those that were."""


def group_deviations(rewards: Tensor, group_size: int) -> tuple[Tensor, Tensor]:
    """Return each reward's distance from its group's mean, exactly zero where it is the mean, and the means.

    Args:
        rewards: shape ``(B,)``, groups of ``group_size`` neighbours.
        group_size: G.

    Returns:
        Deviations, shape ``(P, G)``, and means, shape ``(P, 1)``, float64.

    Example:
        >>> import torch
        >>> deviations, means = group_deviations(torch.tensor([1.0, 0.0, 0.0, 0.0]), group_size=4)
        >>> deviations.tolist(), means.tolist()
        ([[0.75, -0.25, -0.25, -0.25]], [[0.25]])

    """
    groups = rewards.view(-1, group_size).double()
    means = groups.mean(-1, keepdim=True)
    deviations = groups - means
    return deviations.where(deviations.abs() > ROUNDING, 0), means
