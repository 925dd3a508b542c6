"""An operator that spoils credit, so that its run ends with a post-mortem."""

from callbacks.base import CreditOperator
from rlcredit.rollout import Rollout


class Spoiled(CreditOperator, reads="advantages step", writes="advantages"):
    """Make credit NaN in the second step."""

    def assign(self, rollout: Rollout) -> dict[str, float]:
        """Spoil it."""
        if rollout.step == 1:
            rollout.advantages = rollout.advantages * float("nan")
        return {}
