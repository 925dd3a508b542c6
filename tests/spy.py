"""An operator that watches."""

from rlcredit.credit.operator import CreditOperator


class RolloutSpy(CreditOperator, reads="advantages"):
    """Keep the rollouts that pass."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def assign(self, rollout):
        self.seen.append(rollout)
        return {}
