"""TEMPO: GRPO and, at every token, the change of the mean reward of those in the group who got so far."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import ROUNDING_ERROR, group_deviations, group_std
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.prefixes import companion_sums, prefix_values
from rlcredit.formulas.value_estimates import following_values


def tempo_advantages(rewards: Tensor, values: Tensor, mask: Tensor, group_size: int) -> Tensor:
    r"""Add the difference of two prefixes' values to the group's deviation, and divide by its standard deviation.

    .. math:: A_{i,t} = \frac{(r_i - \bar r) + V(s_{i,t+1}) - V(s_{i,t})}{s_r + 10^{-6}}

    V is the mean reward of the group's completions through a prefix, completion i among them. The difference has
    exactly the gradient of :math:`r_i - V(s_{i,t})`: those who chose one token in one state share
    :math:`\nabla \log \pi`, and their rewards have the mean :math:`V(s_{i,t+1})`. So it is a baseline that contains the
    reward it is subtracted from, and zero once a completion is alone: it masks lone suffixes. Added to GRPO it about
    doubles the gradient of shared tokens and leaves that of lone ones as it was, where a loss weighs all tokens alike.
    Its control is flat credit under ``SharedStateMask``.

    Args:
        rewards: NaN where there was no verdict, shape ``(B,)``, groups of ``group_size`` neighbours.
        values: Values of :func:`rlcredit.formulas.prefixes.prefix_values`, shape ``(B, T + 1)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.

    Returns:
        Shape ``(B, T)``; ``GRPO(normalize_std=True)`` where no prefix forks; zero without a verdict.

    Example:
        >>> import torch
        >>> values = torch.tensor([[0.5, 0.5, 1.0], [0.5, 0.5, 0.0]])
        >>> tempo_advantages(torch.tensor([1.0, 0.0]), values, torch.ones(2, 2, dtype=torch.bool), group_size=2)
        tensor([[ 0.7071,  1.4142],
                [-0.7071, -1.4142]])

    """
    deviations, _ = group_deviations(rewards, group_size)
    differences = following_values(rewards, values[:, :-1], mask) - values[:, :-1]
    credit = deviations.view(-1, 1) + differences.where(differences.abs() > ROUNDING_ERROR, 0)
    scale = (group_std(rewards, group_size) + 1e-6).repeat_interleave(group_size, 0)
    return (credit / scale).where(mask & ~rewards.isnan()[:, None], 0).to(rewards.dtype)


class TEMPO(CreditOperator, reads="completion_ids judged rewards", writes="advantages"):
    """Replace the advantages by :func:`tempo_advantages`, as in Tran et al. (2025, arXiv:2509.18314).

    Put it where ``GRPO`` would stand. The loss ``TEPO`` is another paper's. The standard deviation is the unbiased one
    that ``GRPO`` divides by.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace; log the share of tokens whose prefix is shared, and of those at which the value changes."""
        mask, verdict_mask, size = rollout.mask, rollout.judged_mask, rollout.group_size
        counts, sums = companion_sums(rollout.rewards, rollout.judged, rollout.completion_ids, mask, size)
        values = prefix_values(rollout.rewards, counts, sums, mask)
        rollout.advantages = tempo_advantages(rollout.judged_rewards, values, mask, size)
        changes = (following_values(rollout.rewards, values[:, :-1], mask) - values[:, :-1]).abs() > ROUNDING_ERROR
        return {
            "shared_fraction": masked_mean((counts[:, :-1] > 0).float(), verdict_mask),
            "changed_fraction": masked_mean(changes.float(), verdict_mask),
        }

    def bound(self, limit: float, group_size: int) -> float:
        """Both terms are largest for one right of G whose first token nobody else chose."""
        return 2 * (group_size - 1) / group_size**0.5
