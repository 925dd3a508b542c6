"""A pooling strength that waits until execution has become routine."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import is_set_anywhere, pooled_mean_var
from rlcredit.formulas.ramps import linear_ramp


def variance_lambda(ema: float, baseline: float, threshold: float) -> float:
    r"""Rise from 0 to 1 as execution variance falls below a share of what it was.

    .. math:: \lambda = 1 - \min\Bigl(\frac{v / v_0}{\tau},\; 1\Bigr)

    Args:
        ema: Execution variance v, smoothed, in nats squared.
        baseline: Value v0 of that variance after the warm-up.
        threshold: Share tau at which lambda leaves zero.

    Example:
        >>> [round(variance_lambda(v, baseline=1.0, threshold=0.2), 6) for v in (1.0, 0.2, 0.1, 0.0)]
        [0.0, 0.0, 0.5, 1.0]

    """
    return 1 - min(ema / max(baseline, 1e-8) / threshold, 1.0)


class VarianceLambda(
    CreditOperator, reads="judged step signal plan_mask", writes="sepa_lambda", state="ema baseline observed"
):
    """Set lambda to :func:`variance_lambda`, or to a linear ramp where that is higher.

    The variance is that of the signal over all execution tokens of the batch's judged completions, observed once per
    step; its first value starts the moving average, the average after ``warmup`` steps is the baseline for good. The
    SEPA paper's adaptive schedule.

    Args:
        threshold: Share of the baseline below which lambda leaves zero.
        decay: Decay of the moving average, per step. (The published code counted completions, not steps.)
        warmup: Steps until the baseline is taken.
        delay: Steps before the ramp that serves as the floor begins.
        steps: Length in steps of the ramp that serves as the floor; no floor if None.

    """

    def __init__(
        self, threshold: float = 0.2, decay: float = 0.99, warmup: int = 50, delay: int = 50, steps: int | None = 500
    ) -> None:
        super().__init__()
        if threshold <= 0 or not 0 <= decay < 1 or warmup < 1 or delay < 0 or (steps is not None and steps < 1):
            raise ValueError(
                "VarianceLambda expects threshold > 0, 0 <= decay < 1, warmup >= 1, delay >= 0 and steps >= 1, got "
                f"{threshold}, {decay}, {warmup}, {delay} and {steps}."
            )
        self.threshold, self.decay, self.warmup, self.delay, self.steps = threshold, decay, warmup, delay, steps
        self.ema, self.baseline, self.observed = 0.0, 0.0, 0

    def assign(self, rollout: Rollout) -> Metrics:
        """Observe this batch, then set lambda."""
        variance = pooled_mean_var(rollout.signal, rollout.judged_mask & ~rollout.plan_mask)[1].item()
        if is_set_anywhere(
            bool(rollout.judged_mask.any()), rollout.mask.device
        ):  # a batch without any verdict moves nothing
            self.ema = self.decay * self.ema + (1 - self.decay) * variance if self.observed else variance
            self.observed += 1
            self.baseline = self.ema if self.observed == self.warmup else self.baseline
        adaptive = variance_lambda(self.ema, self.baseline, self.threshold) if self.observed >= self.warmup else 0.0
        floor = linear_ramp(rollout.step, self.delay, self.steps) if self.steps else 0.0
        rollout.sepa_lambda = max(adaptive, floor)
        return {"lambda": rollout.sepa_lambda, "variance": variance, "variance_ema": self.ema, "floor": floor}
