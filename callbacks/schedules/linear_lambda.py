"""A pooling strength that grows with the steps taken."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.ramps import linear_ramp


class LinearLambda(CreditOperator, reads="step", writes="sepa_lambda", usual=True):
    """Set lambda to :func:`rlcredit.formulas.ramps.linear_ramp` of the step; the schedule of the SEPA paper.

    Args:
        delay: Last step at which lambda is zero.
        steps: Length of the rise in steps.

    """

    def __init__(self, delay: int = 10, steps: int = 100) -> None:
        super().__init__()
        if delay < 0 or steps < 1:
            raise ValueError(
                f"LinearLambda expects delay >= 0 and steps >= 1, got {delay} and {steps}. "
                "For a lambda of one from the start use ConstantLambda."
            )
        self.delay, self.steps = delay, steps

    def assign(self, rollout: Rollout) -> Metrics:
        """Set and log lambda."""
        rollout.sepa_lambda = linear_ramp(rollout.step, self.delay, self.steps)
        return {"lambda": rollout.sepa_lambda}
