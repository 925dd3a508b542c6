"""Entropy bonus: any loss, less the entropy of the policy that is trained."""

from typing import Any

from torch import Tensor

from rlcredit.formulas.masked import masked_mean
from rlcredit.losses.base import AddedTerm, PolicyLoss
from rlcredit.losses.importance_sampling import ImportanceSampling


class EntropyBonus(AddedTerm, needs="entropy_graph", row_wise=True):
    r"""Maximise the loss's objective plus ``beta`` times the entropy of every token, averaged as the loss is.

    .. math:: J' = J + \beta\, H\bigl(\pi_\theta(\cdot \mid s_t)\bigr)

    The gradient goes through the true entropy over the whole vocabulary (Williams and Peng, 1991; Mnih et al., 2016,
    arXiv:1602.01783). Completions without credit have one too.

    Args:
        loss: Loss that the bonus is added to; importance sampling if None.
        beta: Strength per nat; 0 leaves the loss as it is. Mnih et al. use 0.01.

    """

    def __init__(self, loss: PolicyLoss | None = None, beta: float = 0.01) -> None:
        super().__init__(loss or ImportanceSampling(), beta, "collapse the policy")

    def term(self, logprobs: Tensor, mask: Tensor, *, entropy_graph: Tensor, **facts: Any) -> Tensor:
        """Return the entropy."""
        return entropy_graph

    def term_metrics(self, term: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Return the mean bonus."""
        return {"entropy_bonus": self.beta * masked_mean(term.detach(), mask)}
