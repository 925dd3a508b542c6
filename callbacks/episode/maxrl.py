"""MaxRL: success on a hard prompt counts for more, as maximum likelihood demands."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import group_deviations


def maxrl_advantages(rewards: Tensor, group_size: int, eps: float = 1e-6) -> Tensor:
    r"""Divide the mean-free reward by the group's mean reward.

    .. math:: A_i = \frac{r_i - \bar r}{\bar r + \epsilon}

    An unbiased gradient of the log-likelihood of success, truncated at order G (Tajwar et al., 2026, arXiv:2602.02710).
    One success among G gets G - 1. Inside one group it is GRPO times a factor; across groups the factors differ.

    Args:
        rewards: Reward of each completion, non-negative, NaN where there was no verdict, shape ``(B,)``, groups of
            ``group_size`` neighbours.
        group_size: Completions per prompt, G.
        eps: Number added to the mean; groups whose mean is not above it get zeros.

    Returns:
        Advantages, shape ``(B,)``; they sum to zero in every group, and are zero without a verdict.

    Example:
        >>> import torch
        >>> maxrl_advantages(torch.tensor([1.0, 0.0, 0.0, 0.0]), group_size=4).round(decimals=3)
        tensor([ 3., -1., -1., -1.])

    """
    deviations, mean = group_deviations(rewards, group_size)
    return (deviations / (mean + eps)).where(mean > eps, 0).flatten().to(rewards.dtype)


class MaxRL(CreditOperator, reads="correct judged", writes="advantages", rewards="binary"):
    """Give every token of a completion :func:`maxrl_advantages`.

    Args:
        eps: Number added to the mean reward of a group.

    """

    def __init__(self, eps: float = 1e-6) -> None:
        super().__init__()
        if eps <= 0:
            raise ValueError(f"MaxRL expects eps > 0, got {eps}. A group without success would divide by zero.")
        self.eps = eps

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the advantages; log their largest size."""
        advantages = maxrl_advantages(rollout.verdicts, rollout.group_size, self.eps)
        rollout.advantages = advantages[:, None].expand(rollout.mask.shape)
        return {"advantage_max": advantages.abs().max()}

    def bound(self, limit: float, group_size: int) -> float:
        """One success among G gets G - 1."""
        return group_size - 1
