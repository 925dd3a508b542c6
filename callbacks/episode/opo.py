"""OPO: a completion is worth what it earns above the mean reward of its group's tokens."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import ROUNDING_ERROR, group_deviations
from rlcredit.formulas.masked import masked_sum


def length_weighted_baselines(rewards: Tensor, lengths: Tensor, group_size: int) -> Tensor:
    r"""Return the mean reward of each group, completions weighted by their lengths.

    .. math:: b = \frac{\sum_j l_j r_j}{\sum_j l_j}

    It is the baseline of least variance if the squared gradient of a completion is proportional to its length. Hao et
    al. (2025, arXiv:2505.23585).

    Args:
        rewards: NaN where there was no verdict, shape ``(B,)``, groups of ``group_size`` neighbours.
        lengths: Tokens of each completion, shape ``(B,)``.
        group_size: Completions per prompt, G.

    Returns:
        Shape ``(P, 1)`` float64; zero in a group without verdicts.

    Example:
        >>> import torch
        >>> length_weighted_baselines(torch.tensor([1.0, 0.0, 1.0]), torch.tensor([100, 200, 50]), group_size=3)
        tensor([[0.4286]], dtype=torch.float64)

    """
    groups, weights = rewards.view(-1, group_size).double(), lengths.view(-1, group_size).double()
    verdict_mask = ~groups.isnan()
    total = masked_sum(weights, verdict_mask, dim=-1, keepdim=True)
    return masked_sum(weights * groups, verdict_mask, dim=-1, keepdim=True) / total.clamp(min=1)


def opo_advantages(rewards: Tensor, lengths: Tensor, group_size: int) -> Tensor:
    """Subtract :func:`length_weighted_baselines`.

    Args:
        rewards: NaN where there was no verdict, shape ``(B,)``, groups of ``group_size`` neighbours.
        lengths: Tokens of each completion, shape ``(B,)``.
        group_size: Completions per prompt, G.

    Returns:
        Shape ``(B,)``; weighted by the lengths they sum to zero in every group. With equal lengths they are mean-only
        GRPO. Zero without a verdict.

    Example:
        >>> import torch
        >>> opo_advantages(torch.tensor([1.0, 0.0, 1.0]), torch.tensor([100, 200, 50]), group_size=3)
        tensor([ 0.5714, -0.4286,  0.5714])

    """
    deviations = (
        rewards.double().view(-1, group_size) - length_weighted_baselines(rewards, lengths, group_size)
    ).flatten()
    return deviations.where(deviations.abs() > ROUNDING_ERROR, 0).to(rewards.dtype)


class OPO(CreditOperator, reads="judged rewards", writes="advantages"):
    """Give every token of a completion :func:`opo_advantages`. Put it where ``GRPO`` would stand."""

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the advantages; log their largest size, and how far baselines lie from the means."""
        rewards, size = rollout.judged_rewards, rollout.group_size
        lengths = rollout.mask.sum(-1)
        advantages = opo_advantages(rewards, lengths, size)
        rollout.advantages = advantages[:, None].expand(rollout.mask.shape)
        _, means = group_deviations(rewards, size)
        shift = (length_weighted_baselines(rewards, lengths, size) - means).abs().mean()
        return {"advantage_max": advantages.abs().max(), "baseline_shift": shift}

    def bound(self, limit: float, group_size: int) -> float:
        """A baseline lies between the smallest and the largest reward; a single completion is its own."""
        return 1.0 if group_size > 1 else 0.0
