"""Uncertain turns: only the turns at which the policy was least sure receive credit."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean, masked_topk
from rlcredit.formulas.turns import mark_turns, spread_turns, sum_turns


class UncertainTurns(
    CreditOperator, reads="advantages entropy judged turn", writes="advantages", neutral={"share": 1.0}
):
    r"""Erase the advantages of all but the turns of an episode with the largest mean entropy.

    Exactly :math:`\max(1, \lfloor \rho n \rfloor)` of n turns are left: the mask of CARL (Shen et al., 2025,
    arXiv:2512.04949). Its control is ``RandomTurns`` of the same share. It is the identity on episodes of one turn.

    Args:
        share: Share rho of turns that keep their credit.

    """

    def __init__(self, share: float = 0.5) -> None:
        super().__init__()
        if not 0 < share <= 1:
            raise ValueError(f"UncertainTurns expects share in (0, 1], got {share}. It is the share of turns kept.")
        self.share = share

    def assign(self, rollout: Rollout) -> Metrics:
        """Mask; log the share of turns kept."""
        turn, width, entropy = rollout.turn, rollout.mask.shape[1], rollout.entropy
        turn_mask = mark_turns(turn, width) & rollout.judged[:, None]
        means = sum_turns(entropy, turn, width) / sum_turns(rollout.mask.float(), turn, width)
        selection = masked_topk(means, turn_mask, self.share).float()
        rollout.advantages = rollout.advantages.where(spread_turns(selection, turn) > 0, 0)
        return {"kept_turn_fraction": masked_mean(selection, turn_mask)}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows."""
        return limit
