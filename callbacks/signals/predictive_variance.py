"""Predictive variance: p (1 - p) of the sampled token."""

import math

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_correlation, masked_mean
from rlcredit.formulas.uncertainty import predictive_variance, surprisal


def masked_rank_correlation(values: Tensor, others: Tensor, mask: Tensor) -> Tensor:
    """Return Spearman's correlation where ``mask`` is true, equal values sharing their mean rank; shape ``()``.

    Args:
        values: One value per token, shape ``(B, T)``.
        others: Other values, same shape.
        mask: True on sampled tokens, same shape.

    Example:
        >>> values, mask = torch.tensor([[0.1, 0.2, 0.9]]), torch.ones(1, 3, dtype=torch.bool)
        >>> masked_rank_correlation(values, values.exp(), mask)
        tensor(1., dtype=torch.float64)

    """
    ranks = []
    for sample in (values[mask], others[mask]):
        _, inverse, counts = sample.unique(return_inverse=True, return_counts=True)
        ranks.append((counts.cumsum(0) - (counts - 1) / 2).double()[inverse])
    return masked_correlation(ranks[0], ranks[1], torch.ones_like(ranks[0], dtype=torch.bool))


class PredictiveVariance(CreditOperator, reads="old_logprobs", writes="signal"):
    """Set the signal to :func:`rlcredit.formulas.uncertainty.predictive_variance`, the SEPA paper's second proxy.

    It ranks tokens as surprisal does where p > 1/2 and in reverse where p < 1/2. Even where the ranks agree, weights
    computed from the two differ: only a constant factor cancels in a mean-normalised weight.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the signal; log its correlations with surprisal."""
        rollout.signal = predictive_variance(rollout.old_logprobs)
        surprise = surprisal(rollout.old_logprobs)
        return {
            "mean": masked_mean(rollout.signal, rollout.mask),
            "surprisal_correlation": masked_correlation(rollout.signal, surprise, rollout.mask),
            "surprisal_rank_correlation": masked_rank_correlation(rollout.signal, surprise, rollout.mask),
            "unlikely_fraction": masked_mean((surprise > math.log(2)).float(), rollout.mask),
        }
