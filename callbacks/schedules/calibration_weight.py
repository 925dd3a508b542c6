"""Calibration weight: trust a critic as far as differences of its values are followed by differences of rewards."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.value_estimates import calibration_sums


class CalibrationWeight(
    CreditOperator,
    reads="critic_weight judged rewards values",
    writes="critic_weight",
    state="together own",
    neutral={"strength": 0.0},
):
    r"""Multiply the critic's weight by the slope of rewards on its values, both less the mean of the group's others.

    .. math:: a \leftarrow a\, c^{\,\text{strength}}, \qquad
        c = \min\Bigl(1, \max\Bigl(0, \frac{\overline{(r - b)(V - b)}}{\overline{(V - b)^2}}\Bigr)\Bigr)

    with running means over the rollouts at hand, none of which the critic had seen. The slope is the factor by which
    the critic's deviations from the baseline should be multiplied for the smallest Brier score. Unlike its skill it
    does not fall because outcomes are hard to foresee: it is one for any critic that claims no more than it knows.

    Args:
        decay: Factor of the running means for each new rollout.
        strength: Exponent; 0 trusts any critic.

    """

    def __init__(self, decay: float = 0.8, strength: float = 1.0) -> None:
        super().__init__()
        if not (0 <= decay < 1 and strength >= 0):
            raise ValueError(
                f"CalibrationWeight expects 0 <= decay < 1 and strength >= 0, got {decay:g} and {strength:g}."
            )
        self.decay = decay
        self.strength = strength
        self.together = 0.0
        self.own = 0.0

    def assign(self, rollout: Rollout) -> Metrics:
        """Multiply; log the weight."""
        if rollout.critic_weight:  # a critic that warms up has no values of its own
            sums = calibration_sums(rollout.values, rollout.judged_rewards, rollout.mask, rollout.group_size)
            self.together = self.decay * self.together + sums[0].item()
            self.own = self.decay * self.own + sums[1].item()
        slope = min(1.0, max(0.0, self.together / self.own)) if self.own > 0 else 0.0
        rollout.critic_weight = rollout.critic_weight * slope**self.strength
        return {"weight": rollout.critic_weight}
