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
    r"""Multiply the critic's weight by the slope of the reward on its values, both as changes from the start.

    .. math:: a \leftarrow a\, c^{\,\text{strength}}, \qquad
        c = \min\Bigl(1, \max\Bigl(0, \frac{\overline{(V_t - V_1)(r - V_1)}}{\overline{(V_t - V_1)^2}}\Bigr)\Bigr)

    with running means over rollouts that the critic had not seen; see
    :func:`rlcredit.formulas.value_estimates.calibration_sums`. Credit is made of changes of values, and the slope is
    the factor by which those should be multiplied. Unlike the skill it does not fall because outcomes are hard to
    foresee: a critic that claims no more than it knows keeps its weight, one that has gone stale loses it.

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
        if "values" not in rollout.unwritten:  # a critic that warms up has none
            sums = calibration_sums(rollout.values, rollout.judged_rewards, rollout.mask)
            self.together = self.decay * self.together + sums[0].item()
            self.own = self.decay * self.own + sums[1].item()
        slope = min(1.0, max(0.0, self.together / self.own)) if self.own > 0 else 0.0
        rollout.critic_weight = rollout.critic_weight * slope**self.strength
        return {"weight": rollout.critic_weight}
