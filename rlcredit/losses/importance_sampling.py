"""Importance sampling: credit times ratio, nothing else."""

from typing import Any

from torch import Tensor

from rlcredit.losses.base import PolicyLoss, credited_ratio, masked_log_ratio


class ImportanceSampling(PolicyLoss, row_wise=True):
    r"""Policy gradient corrected by the importance ratio, without clipping.

    .. math:: L = -\sum_{i,t} c_{i,t}\, \rho_{i,t}\, A_{i,t}, \qquad
        \rho_{i,t} = \frac{\pi_\theta(o_{i,t})}{\pi_{old}(o_{i,t})}

    with :math:`c` from :func:`token_weights`. On policy the ratio is one and the gradient is that of REINFORCE. Nothing
    bounds the ratio: where float32 cannot hold it, and there is credit, the loss is not finite, and the run stops.
    """

    def objective(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> Tensor:
        """Return ratio times advantage."""
        return credited_ratio(masked_log_ratio(logprobs, old_logprobs, mask), advantages) * advantages
