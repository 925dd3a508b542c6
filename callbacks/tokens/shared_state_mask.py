"""Shared-state mask: only tokens whose prefix another completion of the group has receive credit."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.prefixes import shared_token_mask


class SharedStateMask(CreditOperator, reads="advantages completion_ids judged", writes="advantages"):
    """Erase the advantages outside :func:`rlcredit.formulas.prefixes.shared_token_mask`.

    A control for ``TEMPO`` and ``PrefixBaseline``: flat credit on the tokens at which those can tell states apart. What
    it gains is due to leaving out lone suffixes, not to knowing the values of prefixes.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Mask; log the share of tokens whose prefix is shared."""
        selection = shared_token_mask(rollout.completion_ids, rollout.mask, rollout.judged, rollout.group_size)
        rollout.advantages = rollout.advantages.where(selection, 0)
        return {"shared_fraction": masked_mean(selection.float(), rollout.judged_mask)}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows; a single completion shares nothing."""
        return limit if group_size > 1 else 0.0
