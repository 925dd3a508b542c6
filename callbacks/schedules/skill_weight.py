"""Skill weight: trust a critic as far as it beats the group mean on rollouts that it has not seen."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.value_estimates import critic_briers, value_skill


class SkillWeight(
    CreditOperator,
    reads="critic_weight judged rewards values",
    writes="critic_weight",
    state="skill",
    neutral={"strength": 0.0},
):
    r"""Multiply the critic's weight by a running mean of its skill on the rollout at hand.

    .. math:: a \leftarrow a\, \bar s^{\,\text{strength}}, \qquad
        \bar s \leftarrow \gamma \bar s
        + (1 - \gamma) \max\Bigl(0, 1 - \frac{\text{Brier}}{\text{Brier of the group mean}}\Bigr)

    A critic goes stale as the policy moves away from what it was fitted to; then its skill falls to zero, and flat
    credit is left. Put it between the critic and what reads its values.

    Args:
        decay: Factor gamma of the running mean, which begins at zero.
        strength: Exponent; 0 trusts any critic.

    """

    def __init__(self, decay: float = 0.7, strength: float = 1.0) -> None:
        super().__init__()
        if not (0 <= decay < 1 and strength >= 0):
            raise ValueError(f"SkillWeight expects 0 <= decay < 1 and strength >= 0, got {decay:g} and {strength:g}.")
        self.decay = decay
        self.strength = strength
        self.skill = 0.0

    def assign(self, rollout: Rollout) -> Metrics:
        """Multiply; log the weight."""
        if "values" not in rollout.unwritten:  # a critic that warms up has none
            briers = critic_briers(rollout.values, rollout.judged_rewards, rollout.mask, rollout.group_size)
            self.skill = self.decay * self.skill + (1 - self.decay) * value_skill(*briers).item()
        rollout.critic_weight = rollout.critic_weight * self.skill**self.strength
        return {"weight": rollout.critic_weight}
