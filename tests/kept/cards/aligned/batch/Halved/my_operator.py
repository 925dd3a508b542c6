"""An operator of one's own, as the how-to shows it."""

from callbacks.base import CreditOperator
from rlcredit.functional.masked import masked_mean
from rlcredit.rollout import Rollout


class Halved(CreditOperator, reads="advantages", writes="advantages"):
    """Give wrong answers half of their credit."""

    def assign(self, rollout: Rollout) -> dict[str, float]:
        """Halve what is below zero."""
        rollout.advantages = rollout.advantages.where(rollout.advantages > 0, rollout.advantages / 2)
        return {"mean": float(masked_mean(rollout.advantages, rollout.mask))}
