"""Pass@k training: a group is worth its chance that one of k tries succeeds."""

import torch
from torch import Tensor

from callbacks.base import CreditOperator, Metrics
from rlcredit.rollout import Rollout


def pass_at_k_advantages(rewards: Tensor, group_size: int, k: int) -> Tensor:
    r"""Credit each completion with its part in the pass@k of its group.

    With n wrong of G, :math:`\bar R = 1 - \binom{n}{k} / \binom{G}{k}` and :math:`\sigma = \sqrt{\bar R (1 - \bar R)}`,

    .. math:: A_{right} = \frac{1 - \bar R}{\sigma + 10^{-6}}, \qquad
        A_{wrong} = \frac{1 - \bar R - \binom{n-1}{k-1} / \binom{G-1}{k-1}}{\sigma + 10^{-6}}

    Chen et al. (2025, arXiv:2508.10751). k = 1 is GRPO divided by the population deviation. Groups in which every k
    tries hold a success, or none does, get zeros. Rewards between 0 and 1 are interpolated: a group's mean gets zero.

    Args:
        rewards: in [0, 1], shape ``(B,)``, groups of ``group_size`` neighbours.
        group_size: G.
        k: tries, at most G.

    Returns:
        Advantages, shape ``(B,)``; they sum to zero in every group.

    Raises:
        ValueError: G completions do not allow k tries.

    Example:
        >>> pass_at_k_advantages(torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), group_size=8, k=4)[1:3]
        tensor([ 0.5222, -0.1741])

    """
    if not 1 <= k <= group_size:
        raise ValueError(
            f"PassAtK expects 1 <= k <= {group_size} completions, got {k}. Set model.sampling.completions."
        )
    groups = rewards.view(-1, group_size)
    wrong = group_size - groups.sum(-1, keepdim=True)
    later = torch.arange(1, k, device=rewards.device)  # C(n-1, k-1) / C(G-1, k-1), factor by factor
    others_fail = ((wrong - later).clamp(min=0) / (group_size - later)).prod(-1, keepdim=True)
    fail = wrong / group_size * others_fail
    deviation = (fail * (1 - fail)).clamp(min=0).sqrt() + 1e-6
    return ((fail - (1 - groups) * others_fail) / deviation).where(fail < 1, 0).flatten()


class PassAtK(CreditOperator, reads="rewards", writes="advantages"):
    """Give every token of a completion :func:`pass_at_k_advantages`.

    Args:
        k: tries.

    """

    def __init__(self, k: int = 4) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"PassAtK expects k >= 1, got {k}. Pass@1 is the solve rate.")
        self.k = k

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the advantages; log their largest size."""
        advantages = pass_at_k_advantages(rollout.rewards, rollout.group_size, self.k)
        rollout.advantages = advantages[:, None].expand(rollout.mask.shape)
        return {"advantage_max": advantages.abs().max()}

    def bound(self, above: float, group_size: int) -> float:
        """The largest over all numbers of successes."""
        rights = torch.arange(group_size)[None] < torch.arange(group_size + 1)[:, None]
        return pass_at_k_advantages(rights.float().flatten(), group_size, self.k).abs().max().item()
