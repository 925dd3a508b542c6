"""A control for credit between turns: the last turn of an episode has all the credit."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.turns import count_turns


class LastTurn(CreditOperator, reads="advantages judged turn", writes="advantages"):
    """Erase the advantages of all turns but the last.

    It is the identity on episodes of one turn. The control at the other end is ``RLOO``: equal credit for every turn.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Mask; log the share of tokens that keep their credit."""
        selection = rollout.turn == count_turns(rollout.turn)[:, None] - 1
        rollout.advantages = rollout.advantages.where(selection, 0)
        return {"kept_fraction": masked_mean(selection.float(), rollout.judged_mask)}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows."""
        return limit
