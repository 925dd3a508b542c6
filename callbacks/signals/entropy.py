"""True entropy: how undecided the policy was, whichever token it then drew."""

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_correlation, masked_mean
from rlcredit.formulas.uncertainty import surprisal


class Entropy(CreditOperator, reads="entropy old_logprobs", writes="signal"):
    r"""Set the signal to :math:`H_t = -\sum_v \pi_{old}(v) \log \pi_{old}(v)`, in nats, over the whole vocabulary.

    The engine measures it on the distribution it samples from, so it costs nothing. Surprisal is one draw of it: their
    means agree, their values on a token do not, and ``surprisal_correlation`` shows how closely they are related.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace the signal; log its mean and its correlation with surprisal."""
        rollout.signal = rollout.entropy
        return {
            "mean": masked_mean(rollout.signal, rollout.mask),
            "surprisal_correlation": masked_correlation(rollout.signal, surprisal(rollout.old_logprobs), rollout.mask),
        }
