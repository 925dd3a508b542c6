"""STARE: while entropy is low, the most surprising tokens of right answers count for more."""

import math

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import is_set_anywhere, pooled_mean_var
from rlcredit.formulas.scopes import top_share_mask

WEIGHT_CAPS = (1.5, 0.5)  # how far adaptive weights may go


def stare_weights(signal: Tensor, advantages: Tensor, mask: Tensor, share: float, up: float, down: float) -> Tensor:
    """Weight the most surprising share of the tokens with positive, and of those with negative advantage.

    Luo et al. (2026, arXiv:2606.19236); shares are of the batch of all processes.

    Args:
        signal: Per-token uncertainty, shape ``(B, T)``.
        advantages: Advantage of each token, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        share: Share p of the tokens of each sign that is weighted, at least one token.
        up: Weight w of tokens with positive advantage; 1 leaves them alone.
        down: Weight m of tokens with negative advantage; 1, their first variant, leaves them alone.

    Returns:
        Shape ``(B, T)``; one elsewhere.

    Example:
        >>> signal, credit = torch.tensor([[0.1, 2.0, 3.0]]), torch.tensor([[1.0, 1.0, -1.0]])
        >>> stare_weights(signal, credit, torch.ones(1, 3, dtype=torch.bool), share=0.5, up=1.1, down=0.9)
        tensor([[1.0000, 1.1000, 0.9000]])

    """
    weights = torch.ones_like(signal)
    for sign, weight in ((1, up), (-1, down)):
        candidates = mask & (sign * advantages > 0)
        weights = torch.where(top_share_mask(signal, candidates, share, "batch", group_size=1), weight, weights)
    return weights


class STARE(
    CreditOperator,
    reads="judged advantages entropy signal",
    writes="advantages",
    state="weight_up weight_down",
    neutral={"up": 1.0, "target": math.inf},
):
    """Multiply the advantages by :func:`stare_weights` while the batch's mean entropy is below ``target``.

    Args:
        share: Share p of the tokens that are weighted. The paper uses 0.1.
        up: Weight w of tokens with positive advantage. The paper uses 1.1 (7B), 1.05 (larger).
        down: Weight m of tokens with negative advantage; the paper's second variant uses 0.9 (0.95).
        target: Mean entropy in nats below which tokens are weighted; infinity weights always. The paper uses 0.3.
        adapt: Step by which both weights leave one while entropy is low, and return; the adaptive variant uses 0.01.

    """

    def __init__(
        self, share: float = 0.1, up: float = 1.1, down: float = 1.0, target: float = 0.3, adapt: float = 0.0
    ) -> None:
        super().__init__()
        if not (0 < share <= 1 <= up and 0 <= down <= 1 and adapt >= 0):
            raise ValueError(
                f"STARE expects 0 < share <= 1 <= up, 0 <= down <= 1 and adapt >= 0, got {self.arguments}."
            )
        self.share, self.target, self.adapt = share, target, adapt
        self.up = self.weight_up = up
        self.down = self.weight_down = down

    def assign(self, rollout: Rollout) -> Metrics:
        """Move the weights if they adapt, apply them, and log both and whether the gate was open."""
        low = pooled_mean_var(rollout.entropy, rollout.judged_mask)[0].item() < self.target
        # A batch without any verdict moves nothing.
        has_tokens = is_set_anywhere(bool(rollout.judged_mask.any()), rollout.mask.device)
        step = has_tokens * (self.adapt if low else -self.adapt)
        self.weight_up = min(max(1.0, self.weight_up + step), max(WEIGHT_CAPS[0], self.up))
        self.weight_down = (
            max(min(1.0, self.weight_down - step), min(WEIGHT_CAPS[1], self.down)) if self.down < 1 else 1.0
        )
        if low:
            selection = (rollout.signal, rollout.advantages, rollout.judged_mask)
            weights = stare_weights(*selection, self.share, self.weight_up, self.weight_down)
            rollout.advantages = rollout.advantages * weights
        return {"open": float(low), "weight_up": self.weight_up, "weight_down": self.weight_down}

    def bound(self, limit: float, group_size: int) -> float:
        """Nothing grows by more than the largest weight."""
        return limit * (max(WEIGHT_CAPS[0], self.up) if self.adapt else self.up)
