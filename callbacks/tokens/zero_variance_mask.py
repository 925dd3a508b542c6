"""Zero-variance mask: a critic gives no credit to groups whose rewards are all equal."""

from rlcredit.credit.alternatives import Credit
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import mixed_groups


class ZeroVarianceMask(
    CreditOperator,
    reads="advantages alternatives judged rewards",
    writes="advantages alternatives",
):
    """Erase the credit of groups in which all judged completions have the same reward.

    Flat credit of such a group is zero, but that of a critic is not: it goes on telling tokens apart where the rewards
    say nothing. Whether its errors do harm there is not known. Put this operator below ``ExpectedGradient`` or
    ``GAE``. That such groups teach nothing is the filter of DAPO (Yu et al., 2025,
    arXiv:2503.14476), which samples others in their place; see ``model.dynamic_sampling``.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Erase; log the share of groups that keep their credit."""
        group_mask = mixed_groups(rollout.judged_rewards, rollout.group_size)
        credit = Credit(rollout.advantages, rollout.alternatives)
        masked_credit = credit.keep_rows(group_mask.repeat_interleave(rollout.group_size))
        rollout.advantages, rollout.alternatives = masked_credit.advantages, masked_credit.alternatives
        return {"mixed_fraction": group_mask.float().mean()}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows; a single completion is always as good as its group."""
        return limit if group_size > 1 else 0.0
