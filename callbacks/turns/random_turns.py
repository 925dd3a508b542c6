"""A control for masks of turns: as many turns keep their credit, chosen at random."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import stream_number
from rlcredit.formulas.masked import masked_mean, masked_topk
from rlcredit.formulas.turns import mark_turns, spread_turns


class RandomTurns(CreditOperator, reads="advantages judged step turn", writes="advantages", neutral={"share": 1.0}):
    r"""Erase the advantages of all but a random share of turns, exactly :math:`\max(1, \lfloor \rho n \rfloor)` of n.

    What ``UncertainTurns`` gains over it is due to *which* turns it keeps. It is the identity on episodes of one turn.

    Args:
        share: Share rho of the turns of an episode that keep their credit.
        seed: Number that tells the draws of two such operators apart; they also depend on the run's seed, step, row and
            turn.

    """

    def __init__(self, share: float = 0.5, seed: int = 0) -> None:
        super().__init__()
        if not 0 < share <= 1:
            raise ValueError(f"RandomTurns expects share in (0, 1], got {share}. It is the share of turns kept.")
        self.share, self.seed = share, seed

    def assign(self, rollout: Rollout) -> Metrics:
        """Mask; log the share of turns kept."""
        turn_mask = mark_turns(rollout.turn, rollout.mask.shape[1]) & rollout.judged[:, None]
        draws = self.draw_token_uniforms(rollout, stream_number(f"RandomTurns {self.seed}"))
        selection = masked_topk(draws, turn_mask, self.share).float()
        rollout.advantages = rollout.advantages.where(spread_turns(selection, rollout.turn) > 0, 0)
        return {"kept_turn_fraction": masked_mean(selection, turn_mask)}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows."""
        return limit
