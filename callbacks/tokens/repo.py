"""REPO: credit leans towards surprising tokens as strongly as it takes to keep the entropy of the first batch."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.distributed import is_set_anywhere, pooled_mean_var

ZETA_BOUNDS = (0.01, 100.0)  # of an adaptive zeta


def repo_advantages(advantages: Tensor, old_logprobs: Tensor, entropy: Tensor, zeta: float) -> Tensor:
    r"""Subtract from each token's credit how much likelier it was than the average token of its distribution.

    .. math:: A'_t = A_t - \zeta\, |A_t|\, \bigl(\log \pi(o_t) + H_t\bigr)

    REPO-R of Petrenko et al. (2026, arXiv:2603.11682), as a third-party implementation has it, not from the paper's
    text. On policy the term has mean zero at every token. Signs may flip where zeta (log pi + H) exceeds one.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        old_logprobs: Log-probability of the sampled token when it was drawn, shape ``(B, T)``.
        entropy: Entropy of the distribution the token was drawn from, in nats, shape ``(B, T)``.
        zeta: Strength of the operator; 0 is the identity.

    Returns:
        Shape ``(B, T)``.

    Example:
        >>> import torch
        >>> p = torch.tensor([[0.9, 0.1]])
        >>> repo_advantages(torch.tensor([[1.0, -1.0]]), p.log(), torch.full((1, 2), 0.325), zeta=1.0)
        tensor([[0.7804, 0.9776]])

    """
    return advantages - zeta * advantages.abs() * (old_logprobs + entropy)


class REPO(
    CreditOperator,
    reads="judged advantages entropy old_logprobs",
    writes="advantages",
    state="strength target",
    neutral={"zeta": 0.0},
):
    """Apply :func:`repo_advantages` with a strength that doubles while entropy is low and halves while it is not.

    Args:
        zeta: Initial strength; it then moves within [0.01, 100]. 0 is the identity and stays.
        adaptive: Whether the strength moves, towards the mean entropy of the first batch of all processes.

    """

    def __init__(self, zeta: float = 1.0, adaptive: bool = True) -> None:
        super().__init__()
        if not zeta >= 0:
            raise ValueError(f"REPO expects zeta >= 0, got {zeta}. A negative one would collapse entropy.")
        self.zeta, self.adaptive = zeta, adaptive
        self.strength, self.target = zeta, None

    def assign(self, rollout: Rollout) -> Metrics:
        """Lean with the strength so far, then move it; log it and the entropy aimed at."""
        mean, zeta = pooled_mean_var(rollout.entropy, rollout.judged_mask)[0].item(), self.strength
        has_tokens = is_set_anywhere(
            bool(rollout.judged_mask.any()), rollout.mask.device
        )  # a batch without any verdict moves nothing
        if self.target is None and has_tokens:
            self.target = mean
        target = mean if self.target is None else self.target
        rollout.advantages = repo_advantages(rollout.advantages, rollout.old_logprobs, rollout.entropy, zeta)
        if self.adaptive and zeta and has_tokens:
            new_strength = zeta * 2 if mean < target else zeta / 2
            self.strength = min(max(new_strength, ZETA_BOUNDS[0]), ZETA_BOUNDS[1])
        return {"zeta": zeta, "target": target}
