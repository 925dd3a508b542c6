"""Hard Delight: right answers teach by their surprising tokens, wrong ones by their unsurprising ones."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.gates import Blend
from rlcredit.formulas.masked import masked_mean, masked_topk


def hard_delight_mask(advantages: Tensor, signal: Tensor, mask: Tensor, keep: float) -> Tensor:
    r"""Mark the share ``keep`` of each completion with the greatest delight, advantage times surprisal.

    Of the n tokens with a positive advantage the :math:`\max(1, \lfloor keep\, n \rfloor)` most surprising, of those
    with a negative one as many of the least surprising; among equals the first. Tokens without credit are not marked.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        signal: Surprisal, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        keep: Share of tokens kept, in (0, 1]; 1 keeps every token that has credit.

    Returns:
        Boolean, shape ``(B, T)``.

    Example:
        >>> import torch
        >>> signal, mask = torch.tensor([[0.1, 2.0, 0.5, 0.2]]), torch.ones(1, 4, dtype=torch.bool)
        >>> hard_delight_mask(torch.full((1, 4), 0.5), signal, mask, keep=0.25)
        tensor([[False,  True, False, False]])
        >>> hard_delight_mask(torch.full((1, 4), -0.5), signal, mask, keep=0.25)
        tensor([[ True, False, False, False]])

    """
    surprising = masked_topk(signal, mask & (advantages > 0), keep)
    return surprising | masked_topk(-signal, mask & (advantages < 0), keep)


class HardDelight(CreditOperator, reads="signal advantages", writes="advantages", neutral={"keep": 1.0}):
    r"""Multiply the advantages by :math:`(1 - b) + b\, k`; k is one inside :func:`hard_delight_mask`, zero outside.

    From the SEPA paper's update of March 2026.

    Args:
        keep: Share of each completion's tokens kept.
        blend: Blend b in [0, 1], 0 being the identity; or ``lambda``, that of the schedule above.

    """

    def __init__(self, keep: float = 0.2, blend: Blend = 1.0) -> None:
        super().__init__()
        if not 0 < keep <= 1 or (blend != "lambda" and not 0 <= blend <= 1):
            raise ValueError(f"HardDelight expects keep in (0, 1] and blend in [0, 1], got {keep} and {blend}.")
        self.keep = keep
        self.blend: Blend = blend
        self.reads = self.reads | ({"sepa_lambda"} if blend == "lambda" else set())

    def assign(self, rollout: Rollout) -> Metrics:
        """Mask; log the share asked for, the share kept of the tokens that have credit, and the blend."""
        selection = hard_delight_mask(rollout.advantages, rollout.signal, rollout.mask, self.keep)
        blend = rollout.sepa_lambda if self.blend == "lambda" else self.blend
        credit_mask = rollout.mask & (rollout.advantages != 0)
        rollout.advantages = rollout.advantages * (1 - blend + blend * selection)
        kept_fraction = masked_mean(selection.float(), credit_mask)
        return {"requested_fraction": self.keep, "kept_fraction": kept_fraction, "blend": blend}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows."""
        return limit
