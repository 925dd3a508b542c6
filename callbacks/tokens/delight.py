"""Delight: a gate opens for surprising tokens of right answers and closes for those of wrong ones."""

import warnings

from torch import Tensor

from rlcredit.credit.contract import StackWarning
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.gates import AdaptiveEta, Blend, Eta, gate_statistics
from rlcredit.formulas.masked import Normalization, completion_normalized


def delight_gate(
    advantages: Tensor, signal: Tensor, mask: Tensor, eta: float, normalization: Normalization = "none"
) -> Tensor:
    r"""Open a gate on each token by its delight, advantage times surprisal.

    .. math:: g_t = \sigma(A_t\, \ell_t / \eta)

    Osband (2026, arXiv:2603.14608). Without delight the gate is one half, so that it about halves the update. With
    ``zscore`` tokens below the mean surprisal flip the sign of their delight: the inversion the SEPA paper reports.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        signal: Surprisal l, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        eta: Temperature; infinity makes every gate one half.
        normalization: Normalisation of the signal, see :func:`rlcredit.formulas.masked.completion_normalized`.

    Returns:
        Shape ``(B, T)``, in (0, 1).

    Example:
        >>> import torch
        >>> delight_gate(torch.tensor([[1.0, -1.0]]), torch.tensor([[2.0, 2.0]]), torch.tensor([[True, True]]), eta=1.0)
        tensor([[0.8808, 0.1192]])

    """
    return (advantages * completion_normalized(signal, mask, normalization) / eta).sigmoid()


class Delight(
    CreditOperator, reads="judged signal advantages", writes="advantages", state="ema", neutral={"blend": 0.0}
):
    r"""Multiply the advantages by :math:`(1 - b) + b\, g`, with the gate g of :func:`delight_gate`.

    Args:
        eta: Temperature of the gate: a number, or an :class:`rlcredit.formulas.gates.AdaptiveEta`.
        normalization: ``none``, ``scale``, ``mad``, or ``zscore``, which is kept to show what it inverts.
        blend: Blend b in [0, 1], 0 being the identity; or ``lambda``, that of the schedule above.

    """

    def __init__(self, eta: Eta = 1.0, normalization: Normalization = "none", blend: Blend = 1.0) -> None:
        super().__init__()
        self.eta = eta
        self.normalization: Normalization = normalization
        self.blend: Blend = blend
        if (not isinstance(eta, AdaptiveEta) and not eta > 0) or (blend != "lambda" and not 0 <= blend <= 1):
            raise ValueError(f"Delight expects eta > 0 and blend in [0, 1], got {eta} and {blend}.")
        self.reads = self.reads | ({"sepa_lambda"} if blend == "lambda" else set())
        self.ema: float | None = None

    def assign(self, rollout: Rollout) -> Metrics:
        """Gate; log what the gate does, its temperature and its blend."""
        old_credit, eta = rollout.advantages, self.eta
        if isinstance(eta, AdaptiveEta):
            delight = old_credit * completion_normalized(rollout.signal, rollout.mask, self.normalization)
            self.ema = eta.next_eta(self.ema, delight, rollout.judged_mask & (old_credit != 0))
            eta = self.ema or eta.high
        gate = delight_gate(old_credit, rollout.signal, rollout.mask, eta, self.normalization)
        blend = rollout.sepa_lambda if self.blend == "lambda" else self.blend
        rollout.advantages = old_credit * (weights := 1 - blend + blend * gate)
        metrics = gate_statistics(gate, weights, old_credit, rollout.mask)
        if blend and rollout.credited_rows().any() and metrics["weight_deviation_within"] < 1e-3 * blend:
            warnings.warn("Delight selects no tokens: all of a completion weigh alike.", StackWarning, stacklevel=2)
        return {**metrics, "eta": eta, "blend": blend}

    def bound(self, limit: float, group_size: int) -> float:
        """A gate never exceeds one."""
        return limit
