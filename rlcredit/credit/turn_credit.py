"""Credit of turns: an operator that makes one number for every turn of the rewards of turns."""

import math
from abc import abstractmethod

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import ROUNDING_ERROR, judged_counts
from rlcredit.formulas.masked import masked_mean, masked_var
from rlcredit.formulas.turn_returns import state_means, turn_reward_table
from rlcredit.formulas.turns import spread_turns


class TurnCredit(CreditOperator, reads="judged rewards turn turn_rewards", writes="advantages"):
    """Base of operators that give each turn one advantage; none without a verdict, or without others in the group."""

    @abstractmethod
    def credit_turns(self, rollout: Rollout, table: Tensor) -> Tensor:
        """Return the advantage of each turn, ``(B, K)``, from the table of rewards; what stands at NaN is left out."""

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the advantages; log their size, their deviation in an episode, and its turns."""
        table = turn_reward_table(rollout.turn_rewards, rollout.judged_rewards, rollout.turn)
        turn_mask, advantages = ~table.isnan(), self.credit_turns(rollout, table)
        companions = judged_counts(rollout.judged_rewards, rollout.group_size) - 1
        credit_mask = turn_mask & (companions > 0).repeat_interleave(rollout.group_size, 0)
        advantages = advantages.where(credit_mask & (advantages.abs() > ROUNDING_ERROR), 0)
        rollout.advantages = spread_turns(advantages.float(), rollout.turn)
        distances = advantages - masked_mean(advantages, turn_mask, dim=-1, keepdim=True)
        metrics = {
            "advantage_max": advantages.abs().max(),
            "deviation_within": masked_var(distances, turn_mask).sqrt(),
            "turns": turn_mask.sum() / turn_mask.any(-1).sum().clamp(min=1),
        }
        if "states" in self.reads:
            _, visits = state_means(table, rollout.states, rollout.group_size)
            metrics["shared_fraction"] = masked_mean((visits > 1).float(), turn_mask)
        return metrics

    def bound(self, limit: float, group_size: int) -> float:
        """Rewards of turns may be any numbers that add up to the reward; a single episode is as good as its group."""
        return math.inf if group_size > 1 else 0.0
