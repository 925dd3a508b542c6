"""STRIDE: n-grams that separate right from wrong answers gain or lose credit, most where the policy was undecided."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.token_grams import gram_scores


class STRIDE(
    CreditOperator,
    reads="advantages completion_ids correct judged entropy turn",
    writes="advantages",
    neutral={"strength": 0.0},
    rewards="binary",
):
    r"""Add to each advantage its size, times ``strength``, times what n-grams say of right and wrong answers.

    .. math:: A \leftarrow A + \lambda |A| z

    with z by :func:`rlcredit.formulas.token_grams.gram_scores`, a reconstruction from an abstract (Zhao et al., 2026,
    arXiv:2606.15866). An n-gram of right answers gains credit in a right answer, and takes blame away in a wrong one.
    No sign flips. With a ``strength`` below zero the same n-grams get weights of the same sizes in the opposite
    direction, which is a control: what both directions gain is not due to what separates right from wrong answers.

    Args:
        strength: Factor :math:`\lambda` from -1 to 1; 0 is the identity. The abstract names none.
        length: Tokens n of an n-gram; 1 compares single tokens, as ``KTAE`` does. The abstract names none.

    """

    def __init__(self, strength: float = 1.0, length: int = 3) -> None:
        super().__init__()
        if not (-1 <= strength <= 1 and length >= 1):
            raise ValueError(
                f"STRIDE expects strength in [-1, 1] and length >= 1, got {strength} and {length}. A larger strength "
                "would turn credit into blame."
            )
        self.strength, self.length = strength, length

    def assign(self, rollout: Rollout) -> Metrics:
        """Add; log the mean size of the change relative to credit, and the share of tokens whose credit shrinks."""
        ids, entropy, turn = rollout.completion_ids, rollout.entropy, rollout.turn
        scores = gram_scores(rollout.verdicts, ids, entropy, turn, rollout.group_size, self.length)
        old_credit, change = rollout.advantages, self.strength * scores
        rollout.advantages = (old_credit + old_credit.abs() * change).to(old_credit.dtype)
        credit_mask = rollout.judged_mask & (old_credit != 0)
        return {
            "change_mean": masked_mean(change.abs(), credit_mask),
            "shrunk_fraction": masked_mean((change * old_credit < 0).double(), credit_mask),
        }

    def bound(self, limit: float, group_size: int) -> float:
        """No score exceeds one."""
        return (1 + abs(self.strength)) * limit
