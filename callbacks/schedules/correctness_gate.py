"""A gate that holds lambda at zero until the policy solves something."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import pooled_mean_var
from rlcredit.formulas.ramps import linear_ramp


class CorrectnessGate(
    CreditOperator,
    reads="step correct judged sepa_lambda",
    writes="sepa_lambda",
    state="opened_at",
    neutral={"threshold": 0.0},
):
    """Hold lambda at zero until the policy first solves ``threshold`` of a batch; from then on leave it as it is.

    The gate of the SEPA paper. Completions without a verdict do not count. A batch opens the gate for the steps
    after it, never for itself: credit would otherwise depend on the rewards of its own batch through lambda. A
    closed gate affects only operators that read lambda; GTPO below it still applies its weights. The schedule above
    goes on while the gate is closed, so that lambda jumps to its current value when the gate opens late; with
    ``ramp`` it rises gradually. ``[ConstantLambda, CorrectnessGate(ramp=100)]`` is a linear schedule that starts at
    the opening.

    Args:
        threshold: Mean reward that opens the gate; at 0 or below it is open from the start.
        ramp: Steps over which lambda rises after the opening; at once if 0.

    """

    def __init__(self, threshold: float = 0.1, ramp: int = 0) -> None:
        super().__init__()
        if not threshold <= 1 or ramp < 0:
            raise ValueError(
                f"CorrectnessGate expects threshold <= 1 and ramp >= 0, got {threshold} and {ramp}. "
                "Mean rewards above 1 do not occur."
            )
        self.threshold, self.ramp = threshold, ramp
        self.opened_at: int | None = 0 if threshold <= 0 else None

    def assign(self, rollout: Rollout) -> Metrics:
        """Scale lambda by how far the gate is open, then open it if this batch reaches the threshold."""
        openness = 0.0
        if self.opened_at is not None:
            openness = linear_ramp(rollout.step, self.opened_at, self.ramp) if self.ramp else 1.0
        rollout.sepa_lambda = rollout.sepa_lambda * openness
        right_share = pooled_mean_var(rollout.correct, rollout.judged)[0].item()
        if self.opened_at is None and right_share >= self.threshold:
            self.opened_at = rollout.step
        return {"openness": openness, "lambda": rollout.sepa_lambda}
