"""How many groups teach nothing, and how many would if all prompts were equally hard."""

from callbacks.base import CreditOperator, Metrics
from rlcredit.rollout import Rollout


class ZeroVariance(CreditOperator, reads="correct advantages"):
    r"""Log the share of groups of equal verdicts, all right and all wrong apart.

    ``expected`` is :math:`p^G + (1 - p)^G` at the batch's solve rate p: what remains above it is prompts of unequal
    difficulty. ``silent`` is the share of groups without any credit at this place in the list, which operators like
    ``OutcomeAnchor`` and ``ZeroVarianceShaping`` lower.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Return the shares."""
        group_size = rollout.group_size
        groups = rollout.correct.view(-1, group_size)
        all_right, all_wrong = (groups == 1).all(-1), (groups == 0).all(-1)
        rate = rollout.correct.mean()
        silent = ~rollout.credited().view(-1, group_size).any(-1)
        return {
            "fraction": (all_right | all_wrong).float().mean(),
            "all_right": all_right.float().mean(),
            "all_wrong": all_wrong.float().mean(),
            "expected": rate**group_size + (1 - rate) ** group_size,
            "silent": silent.float().mean(),
        }
