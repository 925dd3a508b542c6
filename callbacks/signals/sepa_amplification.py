"""SEPA amplification: execution tokens are pushed away from their mean."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean


def sepa_amplified_signal(
    signal: Tensor, plan_mask: Tensor, mask: Tensor, sepa_lambda: float, clamped: bool = False
) -> Tensor:
    r"""Push the execution tokens of each completion away from their mean.

    .. math:: S'_t = (1 + \lambda) S_t - \lambda \bar S_E \quad (t \in E), \qquad S'_t = S_t \quad (t \notin E)

    The deviation of execution tokens inside the completion grows by :math:`1 + \lambda`, their mean stays. Values may
    become negative, but GTPO's weights stay above :math:`1 - \beta (1 + \lambda \bar S_E / \bar S)`: where planning is
    the less certain kind and beta = 0.1, that is 0.8 and no mask. Clamping at zero raises the mean and so lowers the
    weights of planning tokens.

    Args:
        signal: Per-token uncertainty, shape ``(B, T)``.
        plan_mask: True on planning tokens, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        sepa_lambda: Strength in [0, 1]; 0 is the identity.
        clamped: Whether to raise negative execution values to zero.

    Returns:
        Shape ``(B, T)``. A completion of planning tokens only is left as it is.

    Example:
        >>> import torch
        >>> signal, plan = torch.tensor([[0.2, 1.8, 0.6]]), torch.tensor([[False, True, False]])
        >>> sepa_amplified_signal(signal, plan, torch.ones(1, 3, dtype=torch.bool), sepa_lambda=1.0)
        tensor([[0.0000, 1.8000, 0.8000]])

    """
    execution = mask & ~plan_mask
    mean = masked_mean(signal, execution, dim=-1, keepdim=True)
    result = signal + sepa_lambda * (signal - mean)
    return (result.clamp(min=0) if clamped else result).where(execution, signal)


class SEPAAmplification(CreditOperator, reads="signal plan_mask sepa_lambda", writes="signal"):
    """Replace the signal by :func:`sepa_amplified_signal`, with the lambda of the schedule above.

    The SEPA paper's reversal of SEPA (teilomillet, 2026).

    Args:
        clamped: Whether to raise negative execution values to zero.

    """

    def __init__(self, clamped: bool = False) -> None:
        super().__init__()
        self.clamped = clamped

    def assign(self, rollout: Rollout) -> Metrics:
        """Amplify; log lambda and the share of tokens below zero, or at it where clamped."""
        arguments = (rollout.signal, rollout.plan_mask, rollout.mask, rollout.sepa_lambda)
        raw = sepa_amplified_signal(*arguments)
        rollout.signal = sepa_amplified_signal(*arguments, clamped=True) if self.clamped else raw
        return {"lambda": rollout.sepa_lambda, "negative_fraction": masked_mean((raw < 0).float(), rollout.mask)}
