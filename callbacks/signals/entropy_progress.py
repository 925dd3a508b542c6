"""The cumulative-entropy clock: progress is the share of a completion's entropy spent so far."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout, positional_progress
from rlcredit.formulas.masked import masked_correlation


def entropy_progress(entropy: Tensor, mask: Tensor) -> Tensor:
    r"""Return the share of a completion's entropy that has been spent up to and including each token.

    .. math:: u_t = \sum_{j \le t} H_j \Big/ \sum_{j \le |o|} H_j

    The clock of EP-GRPO (Yu et al., 2026, arXiv:2605.04960), a reconstruction without its equations.

    Args:
        entropy: Entropy of each token's distribution in nats, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    Returns:
        In (0, 1], shape ``(B, T)``; position over length where a completion has no entropy.

    Example:
        >>> import torch
        >>> entropy_progress(torch.tensor([[1.0, 0.0, 3.0]]), torch.tensor([[True, True, True]]))
        tensor([[0.2500, 0.2500, 1.0000]])

    """
    running_sum = entropy.where(mask, 0).double().cumsum(-1)
    share = (running_sum / running_sum[:, -1:]).to(entropy.dtype)
    tiny = entropy.new_tensor(1e-6)  # progress must be positive, also before the first uncertain token
    return share.clamp(min=tiny).where(mask & (running_sum[:, -1:] > 0), positional_progress(mask))


class EntropyProgress(CreditOperator, reads="entropy", writes="progress"):
    """Replace the positional clock by :func:`entropy_progress`; put it above ``BucketNormalization``."""

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the clock; log how far it still agrees with position."""
        rollout.progress = entropy_progress(rollout.entropy, rollout.mask)
        position = positional_progress(rollout.mask)
        return {"position_correlation": masked_correlation(rollout.progress, position, rollout.mask)}
