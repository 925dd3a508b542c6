"""Entropy mask: only the most uncertain tokens receive credit."""

from typing import Literal

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.scopes import Scope, kept_token_share, top_share_mask


def entropy_mask(
    signal: Tensor, mask: Tensor, rho: float, scope: Scope, group_size: int, keep_ties: bool = False
) -> Tensor:
    r"""Mark the ``rho`` of tokens with the largest signal, exactly :math:`\max(1, \lfloor \rho n \rfloor)` of n.

    Wang et al. (2025, arXiv:2506.01939), who mean true entropy and the batch. Among equal values the first win. A
    threshold, ``keep_ties``, keeps them all: every token, where more than 1 - rho of them have no surprisal.

    Args:
        signal: Per-token uncertainty, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        rho: Share of tokens kept, in (0, 1]; 1 keeps every token.
        scope: Tokens among which values are compared.
        group_size: Completions per prompt, G.
        keep_ties: Whether to keep also whatever equals the smallest signal kept.

    Returns:
        Boolean, shape ``(B, T)``.

    Example:
        >>> import torch
        >>> entropy_mask(torch.tensor([[0.0, 0.7, 0.9]]), torch.tensor([[True] * 3]), 0.7, "sequence", group_size=1)
        tensor([[False,  True,  True]])

    """
    return top_share_mask(signal, mask, rho, scope, group_size, keep_ties)


class EntropyMask(CreditOperator, reads="judged signal advantages", writes="advantages", neutral={"rho": 1.0}):
    """Erase the advantages outside :func:`entropy_mask`. Put ``Entropy`` above it to mask by true entropy.

    Args:
        rho: Share of tokens kept.
        scope: Tokens among which values are compared.
        denominator: ``all`` leaves what is kept as it is, so that a loss divided by all tokens shrinks; ``kept``
            divides it by the share kept inside the scope, as if the loss were divided by the tokens kept.
        keep_ties: Whether to keep also whatever equals the smallest signal kept.

    """

    def __init__(
        self,
        rho: float = 0.2,
        scope: Scope = "batch",
        denominator: Literal["all", "kept"] = "all",
        keep_ties: bool = False,
    ) -> None:
        super().__init__()
        if not 0 < rho <= 1:
            raise ValueError(f"EntropyMask expects rho in (0, 1], got {rho}. It is the share of tokens kept.")
        self.rho, self.keep_ties = rho, keep_ties
        self.scope: Scope = scope
        self.denominator = require_choice("EntropyMask", "denominator", denominator, ("all", "kept"))

    def assign(self, rollout: Rollout) -> Metrics:
        """Mask; log the share asked for, the share kept, and that of tokens tied with the last one kept."""
        mask = rollout.judged_mask
        choice = (rollout.signal, mask, self.rho, self.scope, rollout.group_size)
        exact, tie_mask = entropy_mask(*choice), entropy_mask(*choice, keep_ties=True)
        selection = tie_mask if self.keep_ties else exact
        share = kept_token_share(selection, mask, self.scope, rollout.group_size) if self.denominator == "kept" else 1.0
        rollout.advantages = (rollout.advantages / share).where(selection, 0)
        kept_fraction, tied_fraction = (masked_mean(m.float(), mask) for m in (selection, tie_mask & ~exact))
        return {"requested_fraction": self.rho, "kept_fraction": kept_fraction, "tied_fraction": tied_fraction}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows, unless the share kept divides it."""
        return limit if self.denominator == "all" else super().bound(limit, group_size)
