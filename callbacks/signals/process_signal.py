"""Implicit process signal: how far training has moved the policy on each token."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean


def process_signal(ref_log_ratio: Tensor, mask: Tensor, beta: float) -> Tensor:
    r"""Scale the log-ratio of policy and reference, an implicit reward of each token.

    .. math:: s_t = \beta\, \bigl(\log \pi_{old}(o_t) - \log \pi_{ref}(o_t)\bigr)

    Eq. 7 of ERPO (Yu and Li, 2026, arXiv:2603.28204) as a third-party implementation numbers it: a reconstruction
    without the paper's text. Before the first update policy and reference are the same and the signal is zero. Both
    sides of the ratio must come from one computation: a difference in rounding would be a signal too, and
    :class:`BucketNormalization` would raise it to the size of a real one.

    Args:
        ref_log_ratio: Log-ratio log pi_old - log pi_ref, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        beta: Scale of the signal; 0 gives no signal. It cancels where the signal is normalised.

    Returns:
        Shape ``(B, T)``, zero outside the mask.

    Example:
        >>> import torch
        >>> mask = torch.tensor([[True, True]])
        >>> process_signal(torch.tensor([[1.0, -1.0]]), mask, beta=0.1)
        tensor([[ 0.1000, -0.1000]])

    """
    return (beta * ref_log_ratio).where(mask, 0)


class ProcessSignal(CreditOperator, reads="ref_log_ratio", writes="process", usual=True, costly=True):
    """Set the process signal to :func:`process_signal`; the ratio costs two more forward passes per rollout.

    Args:
        beta: Scale of the signal.

    """

    def __init__(self, beta: float = 0.1) -> None:
        super().__init__()
        if not beta >= 0:
            raise ValueError(f"ProcessSignal expects beta >= 0, got {beta}. A negative one would praise the reference.")
        self.beta = beta

    def assign(self, rollout: Rollout) -> Metrics:
        """Set the signal; log its mean, which is beta times an estimate of KL(policy || reference), and its size."""
        rollout.process = process_signal(rollout.ref_log_ratio, rollout.mask, self.beta)
        size = masked_mean(rollout.process.abs(), rollout.mask)
        return {"mean": masked_mean(rollout.process, rollout.mask), "size": size}
