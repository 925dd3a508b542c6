"""Outcome anchor: the process signal is added to the advantage with the sign of the outcome."""

from typing import Literal

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.parameter_choices import require_choice


def outcome_anchor(
    advantages: Tensor, process: Tensor, mask: Tensor, rewards: Tensor, eta: float, zero_variance: str
) -> Tensor:
    r"""Add the process signal, anchored to the outcome.

    .. math:: A'_{i,t} = A_{i,t} + \eta\, a_{i,t}\, \tilde s_{i,t}, \qquad a_{i,t} = \operatorname{sgn} A_{i,t}

    The last line of ERPO (2603.28204) and EP-GRPO (2605.04960), a reconstruction: we do not know how either paper
    combines its parts. Where training has made a token likelier, it gains in a right answer and loses in a wrong
    one; where training has made it less likely, it loses in a right answer and gains in a wrong one.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        process: Process signal, normalised, and gated if a gate stands above, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        rewards: 1 for right, 0 for wrong, anything else for neither, shape ``(B,)``.
        eta: Strength; 0 is the identity.
        zero_variance: ``off`` leaves completions without any advantage alone; ``outcome`` anchors them by verdict, +1
            for right and -1 for wrong, so that groups of equal verdicts still teach.

    Returns:
        Shape ``(B, T)``.

    Example:
        >>> mask, process = torch.tensor([[True], [True]]), torch.tensor([[1.0], [1.0]])
        >>> outcome_anchor(torch.tensor([[0.5], [-0.5]]), process, mask, torch.tensor([1.0, 0.0]), 0.2, "off")
        tensor([[ 0.7000],
                [-0.7000]])

    """
    require_choice("outcome_anchor", "zero_variance", zero_variance, ("off", "outcome"))
    anchor = advantages.sign()
    if zero_variance == "outcome":
        silent = ~(advantages.where(mask, 0) != 0).any(-1, keepdim=True)
        outcome = (2 * rewards - 1).where((rewards == 0) | (rewards == 1), 0)[:, None]
        anchor = torch.where(silent, outcome, anchor)
    return advantages + eta * anchor * process.where(mask, 0)


class OutcomeAnchor(
    CreditOperator, reads="advantages correct judged process", writes="advantages", neutral={"eta": 0.0}
):
    """Apply :func:`outcome_anchor` to the ledger.

    Args:
        eta: Strength. A third-party ERPO uses 0.2.
        zero_variance: ``off`` as in ERPO, ``outcome`` as in EP-GRPO.

    """

    def __init__(self, eta: float = 0.2, zero_variance: Literal["off", "outcome"] = "off") -> None:
        super().__init__()
        if not eta >= 0:
            raise ValueError(f"OutcomeAnchor expects eta >= 0, got {eta}. A negative eta would invert the process.")
        self.eta, self.zero_variance = eta, zero_variance
        self.rewards = "binary" if zero_variance == "outcome" else "real"

    def assign(self, rollout: Rollout) -> Metrics:
        """Anchor; log the share of tokens whose sign turned, and the size of what was added over that of advantages."""
        base = rollout.advantages
        arguments = (base, rollout.process, rollout.mask, rollout.verdicts, self.eta, self.zero_variance)
        rollout.advantages = outcome_anchor(*arguments)
        turned_share = masked_mean((rollout.advantages * base < 0).float(), rollout.mask)
        change, present = (masked_mean(size.abs(), rollout.mask) for size in (rollout.advantages - base, base))
        return {"turned_fraction": turned_share, "relative_size": (change / present).where(present > 0, 0)}
