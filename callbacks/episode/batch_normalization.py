"""REINFORCE++: one mean and one deviation for the whole batch."""

from typing import Literal

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import pooled_mean_var
from rlcredit.formulas.groups import group_deviations
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.parameter_choices import require_choice


def batch_normalized_advantages(advantages: Tensor, mask: Tensor) -> Tensor:
    r"""Standardise the advantages over all tokens of the batch, on all processes.

    .. math:: \hat A_{i,t} = \frac{A_{i,t} - \operatorname{mean}(A)}{\operatorname{std}(A) + 10^{-8}}

    Hu et al. (2025, arXiv:2501.03262, Eq. 10). Only ``mask`` decides which tokens count: a
    completion whose advantage happens to be zero is part of the mean.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        mask: True on the tokens that count and change, shape ``(B, T)``.

    Returns:
        Shape ``(B, T)``, as before outside the mask.

    Example:
        >>> import torch
        >>> batch_normalized_advantages(torch.tensor([[0.5, 0.5, -1.0]]), torch.tensor([[True, True, True]]))
        tensor([[ 0.7071,  0.7071, -1.4142]])

    """
    mean, variance = pooled_mean_var(advantages, mask)
    return ((advantages - mean) / (variance.sqrt() + 1e-8)).to(advantages.dtype).where(mask, advantages)


class BatchNormalization(CreditOperator, reads="judged advantages", writes="advantages"):
    """Apply :func:`batch_normalized_advantages` to the ledger.

    Below GRPO this is the baseline variant of REINFORCE++. There, completions without advantage, such as those of
    groups of equal rewards, have some after it unless the batch mean is zero.

    Args:
        zero_variance: ``include`` groups of equal rewards like all others, or ``exclude`` them: neither counted nor
            changed. Completions without a verdict are neither, whichever it is.

    """

    def __init__(self, zero_variance: Literal["include", "exclude"] = "include") -> None:
        super().__init__()
        self.zero_variance = require_choice(
            "BatchNormalization", "zero_variance", zero_variance, ("include", "exclude")
        )
        self.reads = self.reads | ({"rewards"} if zero_variance == "exclude" else set())

    def assign(self, rollout: Rollout) -> Metrics:
        """Standardise; log the largest advantage, and the share of tokens that counted."""
        verdict_mask = rollout.judged_mask
        if self.zero_variance == "exclude":
            deviations, _ = group_deviations(rollout.judged_rewards, rollout.group_size)
            varied_rows = deviations.any(-1).repeat_interleave(rollout.group_size)
            verdict_mask = verdict_mask & varied_rows[:, None]
        rollout.advantages = batch_normalized_advantages(rollout.advantages, verdict_mask)
        largest = rollout.advantages.where(rollout.mask, 0).abs().max()
        return {"advantage_max": largest, "counted_fraction": masked_mean(verdict_mask.float(), rollout.mask)}
