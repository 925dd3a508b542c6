"""SEPA: execution tokens share their uncertainty, planning tokens keep theirs."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean


def sepa_pooled_signal(signal: Tensor, plan_mask: Tensor, mask: Tensor, sepa_lambda: float) -> Tensor:
    r"""Pool the execution tokens of each completion towards their mean.

    .. math:: S'_t = \lambda \bar S_E + (1 - \lambda) S_t \quad (t \in E), \qquad S'_t = S_t \quad (t \notin E)

    The mean over execution tokens stays, their variance inside the completion falls to :math:`(1-\lambda)^2` of what
    it was, and the variance *between* completions stays. The completion's mean stays too, and with it the GTPO weights
    of planning tokens: pooling removes contrast from execution and adds nothing to planning.

    Args:
        signal: Per-token uncertainty, shape ``(B, T)``.
        plan_mask: True on planning tokens, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        sepa_lambda: Strength in [0, 1]; 0 is the identity.

    Returns:
        Shape ``(B, T)``. A completion of planning tokens only is left as it is.

    Example:
        >>> import torch
        >>> signal, plan = torch.tensor([[0.2, 1.8, 0.4]]), torch.tensor([[False, True, False]])
        >>> sepa_pooled_signal(signal, plan, torch.ones(1, 3, dtype=torch.bool), sepa_lambda=1.0)
        tensor([[0.3000, 1.8000, 0.3000]])

    """
    execution = mask & ~plan_mask
    mean = masked_mean(signal, execution, dim=-1, keepdim=True)
    return (signal + sepa_lambda * (mean - signal)).where(execution, signal)


class SEPA(CreditOperator, reads="signal plan_mask sepa_lambda", writes="signal"):
    """Replace the signal by :func:`sepa_pooled_signal`, with the lambda of the schedule above.

    Selective Entropy Pooling with Annealing (teilomillet, 2026). Put ``SignalStats`` above and below it to see what it
    does to the variances.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Pool; log lambda and the share of tokens pooled."""
        rollout.signal = sepa_pooled_signal(rollout.signal, rollout.plan_mask, rollout.mask, rollout.sepa_lambda)
        return {
            "lambda": rollout.sepa_lambda,
            "execution_fraction": masked_mean((~rollout.plan_mask).float(), rollout.mask),
        }
