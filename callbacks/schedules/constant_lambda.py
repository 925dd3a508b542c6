"""A pooling strength that never changes."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout


class ConstantLambda(CreditOperator, writes="sepa_lambda", neutral={"value": 0.0}):
    """Set lambda to one value, at every step.

    Args:
        value: Value of lambda in [0, 1]; 0 turns off the operators that read it.

    """

    def __init__(self, value: float = 1.0) -> None:
        super().__init__()
        if not 0 <= value <= 1:
            raise ValueError(f"ConstantLambda expects value in [0, 1], got {value}. It is a share of pooling.")
        self.value = value

    def assign(self, rollout: Rollout) -> Metrics:
        """Set and log lambda."""
        rollout.sepa_lambda = self.value
        return {"lambda": self.value}
