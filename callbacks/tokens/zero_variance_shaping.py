"""RL-ZVP: groups of equal verdicts teach too, each token by its entropy."""

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import unanimous_groups
from rlcredit.formulas.masked import masked_mean


def zero_variance_advantages(
    advantages: Tensor, entropy: Tensor, verdicts: Tensor, mask: Tensor, group_size: int, alpha: float
) -> Tensor:
    r"""Replace the advantages of groups that are all right, or all wrong.

    .. math:: A_t = \alpha H_t \text{ (all right)}, \qquad
        A_t = -\alpha \bigl(\max_j H_j - H_t\bigr) \text{ (all wrong)}

    Eq. 5 of RL-ZVP (2025, arXiv:2509.21880), the maximum over the completion: undecided tokens of right answers are
    rewarded most, decided tokens of wrong ones punished most.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        entropy: Entropy of each token's distribution in nats, shape ``(B, T)``.
        verdicts: 1 for right, 0 for wrong, anything else for neither (left alone), shape ``(B,)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.
        alpha: Strength of the operator; 0 gives these groups no credit.

    Returns:
        Shape ``(B, T)``.

    Example:
        >>> right, mask = torch.tensor([1.0]), torch.tensor([[True, True]])
        >>> entropy = torch.tensor([[0.0, 2.0]])
        >>> zero_variance_advantages(torch.zeros(1, 2), entropy, right, mask, 1, alpha=0.1)
        tensor([[0.0000, 0.2000]])
        >>> zero_variance_advantages(torch.zeros(1, 2), entropy, right - 1, mask, 1, alpha=0.1)
        tensor([[-0.2000, -0.0000]])

    """
    kinds = zip(unanimous_groups(verdicts, group_size), (1.0, 0.0), strict=True)
    all_right, all_wrong = (
        (groups.repeat_interleave(group_size) & (verdicts == verdict))[:, None] for groups, verdict in kinds
    )
    highest = entropy.where(mask, 0).amax(-1, keepdim=True)
    shaped_values = torch.where(all_right, alpha * entropy, -alpha * (highest - entropy))
    return torch.where(all_right | all_wrong, shaped_values, advantages)


class ZeroVarianceShaping(
    CreditOperator,
    reads="advantages correct entropy judged",
    writes="advantages",
    neutral={"alpha": 0.0},
    rewards="binary",
):
    """Apply :func:`zero_variance_advantages` to the ledger.

    Args:
        alpha: Strength of the operator. The paper's value could not be found; 0.1 keeps a token of 1 nat below most
            advantages.

    """

    def __init__(self, alpha: float = 0.1) -> None:
        super().__init__()
        if alpha < 0:
            raise ValueError(f"ZeroVarianceShaping expects alpha >= 0, got {alpha}. It would punish right answers.")
        self.alpha = alpha

    def assign(self, rollout: Rollout) -> Metrics:
        """Shape; log the share of tokens that had no credit and now have some, and its mean size."""
        old_credit, mask = rollout.advantages, rollout.mask
        rollout.advantages = zero_variance_advantages(
            old_credit, rollout.entropy, rollout.verdicts, mask, rollout.group_size, self.alpha
        )
        woken = mask & (old_credit == 0) & (rollout.advantages != 0)
        size = masked_mean(rollout.advantages.abs(), woken)
        return {"woken_fraction": masked_mean(woken.float(), mask), "woken_size": size}
