"""OPSA: a negative advantage on unlikely tokens, whatever the answer was worth."""

from typing import get_args

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import GroupChoice, chosen_rows
from rlcredit.formulas.masked import masked_mean, masked_topk
from rlcredit.formulas.parameter_choices import require_choice


def suppressing_credit(entropy: Tensor, mask: Tensor, size: float, spread: float) -> Tensor:
    r"""Punish tokens, those with the highest entropy of their completion most.

    .. math:: A_t = -a - b \left(2\, \frac{H_t - H_{\min}}{H_{\max} - H_{\min}} - 1\right)

    Args:
        entropy: Entropy of each token's distribution in nats, shape ``(B, T)``.
        mask: True on the tokens to punish, among which extremes are taken, shape ``(B, T)``.
        size: Size a.
        spread: Distance b from it of the extremes; 0 punishes all alike, as equal entropies do.

    Returns:
        Shape ``(B, T)``, zero outside the mask.

    Example:
        >>> import torch
        >>> entropy = torch.tensor([[0.0, 1.0, 2.0, 9.0]])
        >>> suppressing_credit(entropy, entropy < 9, size=0.75, spread=0.25)
        tensor([[-0.5000, -0.7500, -1.0000,  0.0000]])

    """
    low = entropy.where(mask, float("inf")).amin(-1, keepdim=True)
    high = entropy.where(mask, -float("inf")).amax(-1, keepdim=True)
    place = ((entropy - low) / (high - low)).where(high > low, 0.5)
    return (-size - spread * (2 * place - 1)).where(mask, 0)


class OPSA(
    CreditOperator,
    reads="advantages correct entropy judged old_logprobs",
    writes="advantages",
    neutral={"size": 0.0, "spread": 0.0},
    rewards="binary",
):
    """Add :func:`suppressing_credit` to the least likely tokens of each completion in groups without a right answer.

    Ding and Zhang (2026, arXiv:2608.31046), a reconstruction from its abstract and summaries, which claims that such
    a constant gains as much as a teacher: a control for ``SelfDistillation`` that scores and decodes nothing. The paper
    has no verdicts and punishes tokens of every answer: ``groups="all"``. Whether its shares and extremes are of the
    completion could not be found.

    Args:
        share: Share of the tokens of a completion that is punished.
        size: Mean of the largest and the smallest punishment.
        spread: Distance of the two from it; 0 punishes all alike.
        groups: Groups that are punished: ``all_wrong`` or ``all``.

    """

    def __init__(
        self, share: float = 0.2, size: float = 0.75, spread: float = 0.25, groups: GroupChoice = "all_wrong"
    ) -> None:
        super().__init__()
        if not 0 < share <= 1:
            raise ValueError(f"OPSA expects share in (0, 1], got {share:g}. So many tokens are punished.")
        if not 0 <= spread <= size:
            raise ValueError(f"OPSA expects 0 <= spread <= size, got {spread:g} and {size:g}. It would reward tokens.")
        self.share = share
        self.size = size
        self.spread = spread
        self.groups: GroupChoice = require_choice("OPSA", "groups", groups, get_args(GroupChoice))

    def assign(self, rollout: Rollout) -> Metrics:
        """Add; log the share of tokens that is punished, and their mean log-probability."""
        row_mask = chosen_rows(rollout.verdicts, rollout.group_size, self.groups)
        punished_mask = masked_topk(-rollout.old_logprobs, rollout.mask & row_mask[:, None], self.share)
        credit = suppressing_credit(rollout.entropy, punished_mask, self.size, self.spread)
        rollout.advantages = rollout.advantages + credit
        return {
            "punished_fraction": masked_mean(punished_mask.float(), rollout.mask),
            "logprob": masked_mean(rollout.old_logprobs, punished_mask),
        }

    def bound(self, limit: float, group_size: int) -> float:
        """The largest punishment comes on top."""
        return limit + self.size + self.spread
