"""Odds: likely tokens get the credit, as the optimal baseline gives it to them, without any measuring."""

import math

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.uncertainty import token_odds


class OddsWeight(CreditOperator, reads="advantages old_logprobs", writes="advantages"):
    r"""Multiply advantages by the odds of their token, :math:`\min(\pi_t / (1 - \pi_t), c)`; by zero if it was certain.

    A control for ``MonteCarloCredit`` with the optimal baseline, which is true credit times these odds: what the factor
    gains on credit that was not measured, measuring does not gain. With respect to the logits of two tokens the
    gradient of each is then :math:`\pi_t` times its advantage, whatever :math:`1 - \pi_t`.

    Args:
        limit: Largest weight c.

    """

    def __init__(self, limit: float = math.inf) -> None:
        super().__init__()
        if not limit > 0:
            raise ValueError(f"OddsWeight expects a limit above 0, got {limit}.")
        self.limit = limit

    def assign(self, rollout: Rollout) -> Metrics:
        """Weight; log the mean weight, and the share of tokens at the limit and of certain ones."""
        weights = token_odds(rollout.old_logprobs)
        capped_weights, mask = weights.clamp(max=self.limit), rollout.mask
        rollout.advantages = (rollout.advantages * capped_weights).to(rollout.advantages.dtype)
        return {
            "weight_mean": masked_mean(capped_weights, mask),
            "capped_fraction": masked_mean((weights > self.limit).double(), mask),
            "certain_fraction": masked_mean((weights == 0).double(), mask),
        }

    def bound(self, limit: float, group_size: int) -> float:
        """The limit is the largest factor."""
        return limit * self.limit if limit else 0.0
