"""CSCR: less credit to tokens that answer to any claim about the answer, right or wrong."""

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import damped_weights, masked_mean


def counterfactual_sensitivity(shifts: Tensor, other_shifts: Tensor) -> Tensor:
    r"""Return the larger of the distances that two opposite claims move each token's log-probability.

    .. math:: s_t = \max\bigl(|\Delta^+_t|,\; |\Delta^-_t|\bigr)

    Args:
        shifts: Change of the log-probability under one claim, shape ``(B, T)``.
        other_shifts: Change under the other claim, shape ``(B, T)``.

    Example:
        >>> counterfactual_sensitivity(torch.tensor([[0.5, -2.0]]), torch.tensor([[0.75, 1.0]]))
        tensor([[0.7500, 2.0000]])

    """
    return torch.maximum(shifts.abs(), other_shifts.abs())


class CSCR(
    CreditOperator,
    reads="advantages completion_ids lookahead old_logprobs prompt_ids",
    writes="advantages",
    neutral={"strength": 0.0},
    costly=True,
):
    r"""Weight the advantages of each completion by :math:`e^{-\lambda s_t}`, weights averaging to one.

    He et al. (2026, arXiv:2607.27888), a reconstruction from its abstract and summaries:
    :func:`counterfactual_sensitivity` tells how a token answers to claims, and most tokens answer alike to opposite
    ones, so a large shift is no sign of worth. The direction of flat credit, and its sum, stay as they are. It is the
    opposite of ``SelfDistillation``, which gives such tokens more. Two scoring passes over completions with credit,
    nothing is decoded.

    Args:
        right: Text behind the question that claims the answer to be right; ``{answer}`` stands for the reference.
        wrong: Text that claims the opposite.
        strength: Strength :math:`\lambda` per nat; 0 weights all alike. The paper's value could not be found.

    """

    def __init__(
        self,
        right: str = "\n\nThe following answer is right.",
        wrong: str = "\n\nThe following answer is wrong.",
        strength: float = 1.0,
    ) -> None:
        super().__init__()
        if not strength >= 0:
            raise ValueError(f"CSCR expects strength >= 0, got {strength:g}. It would reward sensitivity.")
        self.right = right
        self.wrong = wrong
        self.strength = strength

    def assign(self, rollout: Rollout) -> Metrics:
        """Reweight; log the mean sensitivity, the share of tokens that both claims move one way, and the extremes."""
        row_mask = rollout.credited_rows()
        mask = rollout.mask & row_mask[:, None]
        shifts, other_shifts = (
            (rollout.lookahead.score_with_hint(rollout, row_mask, claim)[0] - rollout.old_logprobs).where(mask, 0)
            for claim in (self.right, self.wrong)
        )
        sensitivity = counterfactual_sensitivity(shifts, other_shifts)
        weights = damped_weights(sensitivity, mask, self.strength).where(mask, 1)
        rollout.advantages = rollout.advantages * weights
        return {
            "sensitivity": masked_mean(sensitivity, mask),
            "same_direction": masked_mean((shifts * other_shifts > 0).float(), mask),
            "weight_min": weights.min(),
            "weight_max": weights.max(),
        }
