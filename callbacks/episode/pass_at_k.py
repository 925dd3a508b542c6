"""Pass@k training: a group is worth its chance that one of k tries succeeds."""

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import group_deviations, judged_counts


def pass_at_k_advantages(rewards: Tensor, group_size: int, k: int) -> Tensor:
    r"""Credit each completion with its part in the pass@k of its group.

    With n wrong of G judged, :math:`\bar R = 1 - \binom{n}{k} / \binom{G}{k}` and
    :math:`\sigma = \sqrt{\bar R (1 - \bar R)}`,

    .. math:: A_{right} = \frac{1 - \bar R}{\sigma + 10^{-6}}, \qquad
        A_{wrong} = \frac{1 - \bar R - \binom{n-1}{k-1} / \binom{G-1}{k-1}}{\sigma + 10^{-6}}

    Chen et al. (2025, arXiv:2508.10751). k = 1 is GRPO divided by the population deviation. Groups in which every k
    tries hold a success, or none does, get zeros, and so do groups of no more than k. Rewards between 0 and 1 are
    interpolated: a group's mean gets zero.

    Args:
        rewards: Reward of each completion in [0, 1], NaN where there was no verdict, shape ``(B,)``, groups of
            ``group_size`` neighbours.
        group_size: Completions per prompt, G.
        k: Number of tries k, at most G.

    Returns:
        Advantages, shape ``(B,)``; they sum to zero in every group.

    Raises:
        ValueError: G completions do not allow k tries.

    Example:
        >>> pass_at_k_advantages(torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), group_size=8, k=4)[1:3]
        tensor([ 0.5222, -0.1741])

    """
    if not 1 <= k <= group_size:
        raise ValueError(f"PassAtK needs 1 <= k <= {group_size} completions, got {k}. Set model.sampling.completions.")
    deviations, mean = group_deviations(rewards, group_size)
    return (deviations * _pass_at_k_factor(mean, judged_counts(rewards, group_size), k)).flatten().to(rewards.dtype)


def _pass_at_k_factor(mean: Tensor, counts: Tensor, k: int) -> Tensor:
    """Right and wrong alike get their deviation times this; zero for fewer than k; all of shape ``(P, 1)``."""
    numbers = torch.arange(1, k, device=mean.device)  # C(n-1, k-1) / C(G-1, k-1), factor by factor
    failing = (counts * (1 - mean) - numbers).clamp(min=0) / (counts - numbers).clamp(min=1)
    others_fail = failing.prod(-1, keepdim=True).where(counts >= k, 0)
    fail = (1 - mean) * others_fail
    return others_fail / ((fail * (1 - fail)).clamp(min=0).sqrt() + 1e-6)


class PassAtK(CreditOperator, reads="correct judged", writes="advantages", rewards="binary"):
    """Give every token of a completion :func:`pass_at_k_advantages`.

    Args:
        k: Number of tries k.

    """

    def __init__(self, k: int = 4) -> None:
        super().__init__()
        self.k = k

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the advantages; log their largest size."""
        advantages = pass_at_k_advantages(rollout.verdicts, rollout.group_size, self.k)
        rollout.advantages = advantages[:, None].expand(rollout.mask.shape)
        return {"advantage_max": advantages.abs().max()}

    def bound(self, limit: float, group_size: int) -> float:
        """The largest over all numbers of right ones among all numbers of judged ones."""
        counts = torch.arange(1.0, group_size + 1).double().repeat(group_size)[:, None]
        mean = (torch.arange(group_size).repeat_interleave(group_size)[:, None] / counts).clamp(max=1)
        return (
            (_pass_at_k_factor(mean, counts, self.k) * torch.maximum(mean, 1 - mean).where(mean % 1 > 0, 0))
            .max()
            .item()
        )

    def notice(self, limit: float, group_size: int) -> str | None:
        """With k = G every group is one sample, and there is nothing to compare."""
        return (
            f"PassAtK(k={self.k}) gives no credit to groups of {group_size}. Lower k." if self.k == group_size else None
        )
