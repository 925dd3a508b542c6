"""GRPO: a completion is worth what it earns above its group."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import group_deviations, group_std


def grpo_advantages(rewards: Tensor, group_size: int, normalize_std: bool = False) -> Tensor:
    r"""Subtract the group's mean reward; optionally divide by its standard deviation.

    .. math:: A_i = r_i - \bar r \qquad\text{or}\qquad A_i = \frac{r_i - \bar r}{s_r + 10^{-6}}

    Mean-only is the form of Dr. GRPO (Liu et al., 2025, arXiv:2503.20783); the division is that of Shao et al. (2024,
    arXiv:2402.03300), with the unbiased standard deviation. With r in {0, 1} the mean-only form never exceeds
    (G - 1) / G. A group of equal rewards gets zeros.

    Args:
        rewards: NaN where there was no verdict, shape ``(B,)``, groups of ``group_size`` neighbours.
        group_size: Completions per prompt, G.
        normalize_std: Whether to divide by the standard deviation of the group.

    Returns:
        Advantages, shape ``(B,)``; they sum to zero in every group, and are zero without a verdict.

    Example:
        >>> import torch
        >>> grpo_advantages(torch.tensor([1.0, 0.0, 0.0, 0.0]), group_size=4)
        tensor([ 0.7500, -0.2500, -0.2500, -0.2500])

    """
    advantages, _ = group_deviations(rewards, group_size)
    if normalize_std:
        advantages = advantages / (group_std(rewards, group_size) + 1e-6)
    return advantages.flatten().to(rewards.dtype)


class GRPO(CreditOperator, reads="judged rewards", writes="advantages"):
    """Give every token of a completion :func:`grpo_advantages`.

    Args:
        normalize_std: Whether to divide by the standard deviation of the group, as the first GRPO did.

    """

    def __init__(self, normalize_std: bool = False) -> None:
        super().__init__()
        self.normalize_std = normalize_std

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the advantages; log their largest size."""
        advantages = grpo_advantages(rollout.judged_rewards, rollout.group_size, self.normalize_std)
        rollout.advantages = advantages[:, None].expand(rollout.mask.shape)
        return {"advantage_max": advantages.abs().max()}

    def bound(self, limit: float, group_size: int) -> float:
        """Mean-only: (G - 1) / G, for one right or one wrong of G; divided by the deviation, that times sqrt(G)."""
        return (group_size - 1) / group_size * (group_size**0.5 if self.normalize_std else 1)
