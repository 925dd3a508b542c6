"""Four quadrants: tokens by the sign of their credit and by whether the policy was undecided."""

from typing import Literal, get_args

import torch
from torch import Tensor

from rlcredit.formulas.distributed import gather_over_processes, pooled_mean_var
from rlcredit.formulas.masked import masked_mean, masked_median
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.scopes import Scope, scope_count, top_share_mask

Quadrant = Literal["PHR", "PLR", "NHR", "NLR"]
"""Positive or negative credit, high or low entropy; R is the region."""

ALL_QUADRANTS: tuple[Quadrant, ...] = ("PHR", "PLR", "NHR", "NLR")

Threshold = Literal["mean", "median", "top"]
"""High entropy is that of at least the mean, at least the median, or that of the top share."""


def high_entropy_mask(
    entropy: Tensor, mask: Tensor, threshold: Threshold, scope: Scope, group_size: int, share: float = 0.2
) -> Tensor:
    """Mark the tokens at which entropy is high among those of their scope.

    Args:
        entropy: Entropy of each token's distribution in nats, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        threshold: What counts as high.
        scope: Tokens among which values are compared.
        group_size: Completions per prompt, G.
        share: Share of the tokens, used by ``top`` only.

    Returns:
        Boolean, shape ``(B, T)``.

    Example:
        >>> entropy, mask = torch.tensor([[0.0, 0.1, 0.2, 0.9]]), torch.ones(1, 4, dtype=torch.bool)
        >>> high_entropy_mask(entropy, mask, "mean", "group", group_size=1)
        tensor([[False, False, False,  True]])
        >>> high_entropy_mask(entropy, mask, "median", "group", group_size=1)
        tensor([[False, False,  True,  True]])

    """
    require_choice("high_entropy", "threshold", threshold, get_args(Threshold))
    if threshold == "top":
        return top_share_mask(entropy, mask, share, scope, group_size)
    rows = scope_count(mask, scope, group_size)
    values, row_mask = entropy.double().reshape(rows, -1), mask.reshape(rows, -1)  # equal values must equal their mean
    if threshold == "mean" and scope == "batch":
        limit = pooled_mean_var(values, row_mask)[0]
    elif threshold == "mean":
        limit = masked_mean(values, row_mask, dim=-1, keepdim=True)
    else:
        pool = gather_over_processes(values[row_mask])[0][None] if scope == "batch" else values
        limit = masked_median(pool, row_mask if scope != "batch" else torch.ones_like(pool, dtype=torch.bool))
    return ((values >= limit) & row_mask).view(mask.shape)


def quadrant_masks(advantages: Tensor, high: Tensor, mask: Tensor) -> dict[Quadrant, Tensor]:
    """Return the mask of each quadrant; tokens without credit are in none.

    He et al. (2026, arXiv:2604.11056) use the sign of rewards +1 and -1; with a baseline the advantage has that sign.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        high: True where entropy is high, bool, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    """
    positive, negative = mask & (advantages > 0), mask & (advantages < 0)
    return {"PHR": positive & high, "PLR": positive & ~high, "NHR": negative & high, "NLR": negative & ~high}


def mutual_information(bins: Tensor, labels: Tensor) -> Tensor:
    r"""Return the plug-in estimate of :math:`I = H(B) - H(B \mid L)` in nats, float64.

    It is biased upwards, more so with fewer samples: compare it with that of shuffled labels.

    Args:
        bins: Bin of each sample, integers from zero, shape ``(N,)``.
        labels: Label of each sample, integers from zero, shape ``(N,)``.

    Example:
        >>> bins, labels = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 1])
        >>> mutual_information(bins, labels).exp()
        tensor(2., dtype=torch.float64)

    """
    if not len(bins):
        return torch.zeros((), dtype=torch.float64)
    width = int(labels.max()) + 1
    joint = torch.bincount(bins * width + labels, minlength=(int(bins.max()) + 1) * width).view(-1, width).double()
    joint = joint / joint.sum()
    independent = joint.sum(-1, keepdim=True) * joint.sum(0, keepdim=True)
    return (joint * (joint / independent).log()).where(joint > 0, 0).sum()
