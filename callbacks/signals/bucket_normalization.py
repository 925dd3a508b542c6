"""Bucket normalisation: a token's process signal against those of its group at the same stage of the answer."""

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean

MIN_DEVIATION = 1e-8


def bucket_normalized(process: Tensor, progress: Tensor, mask: Tensor, group_size: int, buckets: int) -> Tensor:
    r"""Standardise the process signal within each group and bucket of progress.

    .. math:: \tilde s_{i,t} = \frac{s_{i,t} - \mu_{k,G}}{\sigma_{k,G} + \delta}, \qquad k = \lceil K u_{i,t} \rceil

    Eq. 9 of ERPO (2603.28204) and its namesake in EP-GRPO (2605.04960), reconstructed; deviations are population ones.

    Args:
        process: Process signal S, shape ``(B, T)``.
        progress: Progress U in (0, 1], shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.
        buckets: Number of buckets K; 1 standardises over the group.

    Returns:
        Shape ``(B, T)``; zero in buckets of one token or of equal signals, and outside the mask.

    Example:
        >>> process, progress = torch.tensor([[1.0, 5.0], [3.0, 5.0]]), torch.tensor([[0.5, 1.0], [0.5, 1.0]])
        >>> bucket_normalized(process, progress, torch.ones(2, 2, dtype=torch.bool), group_size=2, buckets=2)
        tensor([[-1.,  0.],
                [ 1.,  0.]])

    """
    groups = len(mask) // group_size
    # 10 * 0.3 is 3.0000000000000004 in binary, and belongs to the third bucket.
    bucket = ((buckets * progress.double() - 1e-6).ceil() - 1).clamp(0, buckets - 1).long()
    cell = (bucket + buckets * torch.arange(groups, device=mask.device).repeat_interleave(group_size)[:, None])[mask]
    values = process[mask].double()
    zeros = values.new_zeros(groups * buckets)
    count = zeros.index_add(0, cell, torch.ones_like(values)).clamp(min=1)
    deviations = values - (zeros.index_add(0, cell, values) / count)[cell]
    deviation = (zeros.index_add(0, cell, deviations**2) / count).sqrt()[cell]
    # What rounding leaves of equal signals has no deviation worth dividing by.
    standard = (deviations / (deviation + MIN_DEVIATION)).where(deviation > MIN_DEVIATION, 0).to(process.dtype)
    return torch.zeros_like(process).masked_scatter(mask, standard)


class BucketNormalization(CreditOperator, reads="judged process progress", writes="process"):
    """Apply :func:`bucket_normalized` to the process signal.

    Args:
        buckets: Stages into which an answer is cut. A third-party ERPO uses 10.

    """

    def __init__(self, buckets: int = 10) -> None:
        super().__init__()
        if buckets < 1:
            raise ValueError(f"BucketNormalization expects buckets >= 1, got {buckets}. One is the whole answer.")
        self.buckets = buckets

    def assign(self, rollout: Rollout) -> Metrics:
        """Standardise; log the share of tokens whose bucket has no variance."""
        arguments = (rollout.process, rollout.progress, rollout.judged_mask, rollout.group_size, self.buckets)
        rollout.process = bucket_normalized(*arguments)
        return {"silent_fraction": masked_mean((rollout.process == 0).float(), rollout.judged_mask)}
