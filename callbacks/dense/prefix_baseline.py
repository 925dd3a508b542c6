"""Prefix baseline: a token is judged against what the others of its group earned from the same prefix."""

import math

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import ROUNDING_ERROR, leave_one_out_deviations
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.prefixes import companion_sums


def prefix_baseline_advantages(
    rewards: Tensor, counts: Tensor, sums: Tensor, mask: Tensor, group_size: int, shrink: float
) -> Tensor:
    r"""Subtract the mean reward of the other completions that share the prefix, shrunk to that of all others.

    .. math:: A_{i,t} = r_i - \frac{\sum_{j \in O_{i,t}} r_j + k\, \bar r_{-i}}{|O_{i,t}| + k}, \qquad
        O_{i,t} = \{j \ne i : y_{j,<t} = y_{i,<t}\}

    The baseline is unbiased: given the prefix, neither who shares it nor what these earn depends on token t of
    completion i, and so :math:`\mathbb{E}[b_{i,t} \nabla \log \pi(y_{i,t})] = 0`. It is the baseline of the state where
    ``RLOO`` has that of the prompt. A completion that is alone has the mean of all others; a single companion is a
    noisy baseline without shrinkage.

    Args:
        rewards: NaN where there was no verdict, shape ``(B,)``, groups of ``group_size`` neighbours.
        counts: Counts of :func:`rlcredit.formulas.prefixes.companion_sums`, shape ``(B, T + 1)``.
        sums: Sums of the same function, shape ``(B, T + 1)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.
        shrink: Weight k of the mean of all others, in completions; infinity is ``RLOO``, 0 shrinks nothing.

    Returns:
        Shape ``(B, T)``; zero without a verdict, and where the group has no other.

    Example:
        >>> import torch
        >>> ids, judged = torch.tensor([[5, 6], [5, 7], [8, 6]]), torch.tensor([True, True, True])
        >>> rewards = torch.tensor([1.0, 0.0, 0.0])
        >>> counts, sums = companion_sums(rewards, judged, ids, ids > 0, group_size=3)
        >>> prefix_baseline_advantages(rewards, counts, sums, ids > 0, group_size=3, shrink=0.0)
        tensor([[ 1.0000,  1.0000],
                [-0.5000, -1.0000],
                [-0.5000, -0.5000]])

    """
    flat = leave_one_out_deviations(rewards, group_size).view(-1, 1)
    others_mean = rewards.double()[:, None] - flat
    counts, sums = counts[:, :-1], sums[:, :-1]
    weight = (counts / (counts + shrink)).where(counts > 0, 0)
    advantages = flat - weight * (sums / counts.clamp(min=1) - others_mean)
    return advantages.where(mask & (advantages.abs() > ROUNDING_ERROR), 0).to(rewards.dtype)


class PrefixBaseline(CreditOperator, reads="completion_ids judged rewards", writes="advantages"):
    """Replace the advantages by :func:`prefix_baseline_advantages`. Put it where ``GRPO`` would stand.

    The group is read again and nothing is decoded. Prefixes are shared where answers are short and certain;
    ``shared_fraction`` says how far.

    Args:
        shrink: Weight of the mean of all others, in completions.

    """

    def __init__(self, shrink: float = 2.0) -> None:
        super().__init__()
        if not shrink >= 0:
            raise ValueError(f"PrefixBaseline expects shrink >= 0, got {shrink}. It is a number of completions.")
        self.shrink = shrink

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace; log the share of tokens whose prefix is shared, and how far baselines differ from ``RLOO``'s."""
        ids, rewards, size = rollout.completion_ids, rollout.judged_rewards, rollout.group_size
        companions = companion_sums(rollout.rewards, rollout.judged, ids, rollout.mask, size)
        rollout.advantages, flat = (
            prefix_baseline_advantages(rewards, *companions, rollout.mask, size, shrink)
            for shrink in (self.shrink, math.inf)
        )
        has_companions, verdict_mask = companions[0][:, :-1] > 0, rollout.judged_mask
        return {
            "shared_fraction": masked_mean(has_companions.float(), verdict_mask),
            "baseline_shift": masked_mean((rollout.advantages - flat).abs(), verdict_mask),
        }

    def bound(self, limit: float, group_size: int) -> float:
        """A baseline lies between the smallest and the largest reward; a single completion has none."""
        return 1.0 if group_size > 1 else 0.0
