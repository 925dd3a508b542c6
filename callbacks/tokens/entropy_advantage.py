"""EntroAdv: a bonus for uncertain tokens, right or wrong, that cannot flip the sign of an advantage."""

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean


def entropy_advantages(advantages: Tensor, entropy: Tensor, alpha: float, kappa: float) -> Tensor:
    r"""Add entropy to the advantage, at most a share of it.

    .. math:: A'_t = A_t + \min\bigl(\alpha H_t,\; |A_t| / \kappa\bigr)

    Cheng et al. (2025, arXiv:2506.14758). Wrong answers are punished less where the policy was undecided, where EAPO
    punishes them more. While kappa > 1 no sign flips.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        entropy: Entropy of each token's distribution in nats, shape ``(B, T)``.
        alpha: Strength of the operator; 0 is the identity.
        kappa: Bound on the bonus: it is at most one part in kappa of the advantage.

    Returns:
        Shape ``(B, T)``.

    Example:
        >>> entropy_advantages(torch.tensor([[1.0, -1.0, 1.0]]), torch.tensor([[0.5, 0.5, 9.0]]), alpha=0.4, kappa=2.0)
        tensor([[ 1.2000, -0.8000,  1.5000]])

    """
    return advantages + torch.minimum(alpha * entropy, advantages.abs() / kappa)


class EntropyAdvantage(CreditOperator, reads="advantages entropy", writes="advantages", neutral={"alpha": 0.0}):
    """Apply :func:`entropy_advantages` to the ledger.

    Args:
        alpha: Strength of the operator. The paper uses 0.4 with GRPO, 0.1 with PPO.
        kappa: Bound on the bonus: it is at most one part in kappa of the advantage. The paper uses 2.

    """

    def __init__(self, alpha: float = 0.4, kappa: float = 2.0) -> None:
        super().__init__()
        if not (alpha >= 0 and kappa > 1):
            raise ValueError(f"EntropyAdvantage expects alpha >= 0 and kappa > 1, got {alpha} and {kappa}.")
        self.alpha, self.kappa = alpha, kappa

    def assign(self, rollout: Rollout) -> Metrics:
        """Add the bonus; log its mean over credited tokens and the share of them at which it was cut."""
        old_credit = rollout.advantages
        credit_mask = rollout.mask & (old_credit != 0)
        cut = self.alpha * rollout.entropy > old_credit.abs() / self.kappa
        rollout.advantages = entropy_advantages(old_credit, rollout.entropy, self.alpha, self.kappa)
        bonus = masked_mean(rollout.advantages - old_credit, credit_mask)
        return {"bonus": bonus, "cut_fraction": masked_mean(cut.float(), credit_mask)}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows by more than one part in kappa."""
        return (1 + 1 / self.kappa) * limit if self.alpha else limit
