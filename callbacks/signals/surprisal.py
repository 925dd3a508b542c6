"""Surprisal: what a fresh ledger holds."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.uncertainty import surprisal


class Surprisal(CreditOperator, reads="old_logprobs", writes="signal", usual=True):
    r"""Set the signal to :math:`-\log \pi_{old}(o_t)`, in nats: how unexpected the sampled token was.

    The neutral signal; needed only to return to it below another one.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the signal; log its mean."""
        rollout.signal = surprisal(rollout.old_logprobs)
        return {"mean": masked_mean(rollout.signal, rollout.mask)}
