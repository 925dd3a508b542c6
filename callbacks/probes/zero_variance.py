"""How many groups teach nothing, and how many would if all prompts were equally hard."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import pooled_mean_var
from rlcredit.formulas.groups import unanimous_groups


class ZeroVariance(CreditOperator, reads="advantages correct judged"):
    r"""Log the share of groups of equal verdicts, all right and all wrong apart.

    ``expected`` is :math:`p^G + (1 - p)^G` at the batch's solve rate p: what remains above it is prompts of unequal
    difficulty. ``silent`` is the share of groups without any credit at this place in the list, which operators like
    ``OutcomeAnchor`` and ``ZeroVarianceShaping`` lower.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Return the shares."""
        all_right, all_wrong = unanimous_groups(rollout.verdicts, rollout.group_size)
        rate = pooled_mean_var(rollout.correct, rollout.judged)[0]
        silent = ~rollout.credited_rows().view(-1, rollout.group_size).any(-1)
        return {
            "fraction": (all_right | all_wrong).float().mean(),
            "all_right": all_right.float().mean(),
            "all_wrong": all_wrong.float().mean(),
            "expected": rate**rollout.group_size + (1 - rate) ** rollout.group_size,
            "silent": silent.float().mean(),
        }
