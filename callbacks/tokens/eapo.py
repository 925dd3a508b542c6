"""EAPO: a token's credit leans towards its entropy, never by more than a fixed share."""

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import group_standardized
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.quadrants import ALL_QUADRANTS, Quadrant, high_entropy_mask, quadrant_masks


def eapo_advantages(
    advantages: Tensor, entropy: Tensor, mask: Tensor, group_size: int, alpha: float, phi: float
) -> Tensor:
    r"""Add a share of each token's standardised entropy, clipped by its advantage, with the advantage's sign.

    .. math:: A'_t = A_t + \alpha\, \operatorname{sgn}(A_t)\, \operatorname{clip}\Bigl(
        \frac{H_t - \mu_H}{\sigma_H},\; -\frac{|A_t|}{\phi},\; \frac{|A_t|}{\phi}\Bigr)

    Eq. 6 and 7 of He et al. (2026, arXiv:2604.11056v1); mean and population deviation over all tokens of the group. It
    is a weight on A within :math:`[1 - \alpha/\phi,\; 1 + \alpha/\phi]`: while alpha < phi no sign flips. How many
    tokens reach its ends depends on the scale of A: the paper's advantages are divided by the group's deviation.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        entropy: Entropy of each token's distribution in nats, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.
        alpha: Strength of the operator; 0 is the identity.
        phi: Bound on the bonus: entropy may add at most one part in phi of the advantage.

    Returns:
        Shape ``(B, T)``; as before where the group's entropy does not vary.

    Example:
        >>> import torch
        >>> mask = torch.tensor([[True, True]])
        >>> eapo_advantages(torch.tensor([[0.5, 0.5]]), torch.tensor([[0.0, 2.0]]), mask, 1, alpha=0.2, phi=2.0)
        tensor([[0.4500, 0.5500]])

    """
    limit = advantages.abs() / phi
    standard = group_standardized(entropy, mask, group_size)
    return advantages + alpha * advantages.sign() * standard.clamp(-limit, limit)


class EAPO(CreditOperator, reads="judged entropy advantages", writes="advantages", neutral={"alpha": 0.0}):
    """Apply :func:`eapo_advantages` to the ledger.

    Args:
        alpha: Strength of the operator. The paper uses 0.2.
        phi: Bound on the bonus: entropy may add at most one part in phi of the advantage. The paper uses 2.
        modulated: Quadrants in which entropy is added, see :func:`quadrant_masks`. The paper's ablations leave out one
            of the four.

    """

    def __init__(self, alpha: float = 0.2, phi: float = 2.0, modulated: tuple[Quadrant, ...] = ALL_QUADRANTS) -> None:
        super().__init__()
        if not 0 <= alpha < phi:
            raise ValueError(f"EAPO expects 0 <= alpha < phi, got {alpha} and {phi}. Otherwise signs may flip.")
        self.alpha, self.phi = alpha, phi
        self.modulated: tuple[Quadrant, ...] = tuple(
            require_choice("EAPO", "modulated", name, ALL_QUADRANTS) for name in modulated
        )

    def assign(self, rollout: Rollout) -> Metrics:
        """Apply; log the share of credited tokens whose entropy term was clipped."""
        old_credit, mask = rollout.advantages, rollout.judged_mask
        clip_mask = group_standardized(rollout.entropy, mask, rollout.group_size).abs() > old_credit.abs() / self.phi
        new_credit = eapo_advantages(old_credit, rollout.entropy, mask, rollout.group_size, self.alpha, self.phi)
        regions = quadrant_masks(
            old_credit, high_entropy_mask(rollout.entropy, mask, "mean", "group", rollout.group_size), mask
        )
        areas = [regions[name] for name in self.modulated]
        rollout.advantages = new_credit.where(torch.stack(areas).any(0), old_credit) if areas else old_credit
        return {"clipped_fraction": masked_mean(clip_mask.float(), mask & (old_credit != 0))}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows by more than alpha / phi."""
        return (1 + self.alpha / self.phi) * limit
