"""How the signal is distributed over planning and execution tokens, at the probe's place in the list."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean, variance_within_between


class SignalStats(CreditOperator, reads="signal plan_mask"):
    r"""Log mean and population variance of the signal, over planning and over execution tokens.

    The variance is split into that *within* completions and that *between* their means (completions counted by their
    tokens; the two add up to the whole). SEPA acts on the first and leaves the second: list the probe above and below
    it, and ``credit/SignalStats_2/execution_variance_within`` is :math:`(1-\lambda)^2` times
    ``credit/SignalStats/execution_variance_within``, while the planning variances are equal.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Return the statistics; zero for a kind of which there is no token."""
        metrics = {}
        kinds = {"plan": rollout.mask & rollout.plan_mask, "execution": rollout.mask & ~rollout.plan_mask}
        for kind, selection in kinds.items():
            inner_variance, between = variance_within_between(rollout.signal, selection)
            metrics[f"{kind}_mean"] = masked_mean(rollout.signal, selection)
            metrics[f"{kind}_variance_within"], metrics[f"{kind}_variance_between"] = inner_variance, between
        return metrics
