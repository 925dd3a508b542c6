"""KTAE: tokens that right answers contain and wrong ones do not gain credit wherever they stand."""

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.contingency_tables import class_counts, fisher_p_values, information_gain
from rlcredit.formulas.masked import masked_mean


def key_token_values(table: Tensor, uses: Tensor, tokens: Tensor, frequency: float) -> Tensor:
    r"""Return how strongly a token speaks for right answers, between -1 and 1.

    .. math:: k = \tanh \tfrac14 \bigl[(e^{-2p} + I)\,(h + f q)\bigr], \qquad h = \arcsin \sqrt{\tfrac{a}{a + c}} -
        \arcsin \sqrt{\tfrac{b}{b + d}}, \qquad q = \frac{F_r}{F_w + 10^{-5}} - \frac{F_w}{F_r + 10^{-5}}

    p is Fisher's (its term is 0 where p = 1), I the information gain in bits, h half of Cohen's, as the authors' code
    has it. F is the saturated frequency of BM25 with k = 2 and b = 1/2, of the token among all tokens of right answers
    and of wrong ones. If one side never uses a token, q is of the order of thousands, and k is 1 or -1 whatever p is.

    Args:
        table: Counts of completions, shape ``(4, N)`` float64, as in
            :func:`rlcredit.formulas.contingency_tables.fisher_p_values`.
        uses: How often right and wrong answers use the token, shape ``(2, N)`` float64.
        tokens: How many tokens right and wrong answers have, shape ``(2, N)`` float64.
        frequency: Weight f of the ratio of frequencies; 0 leaves Fisher, information and h.

    Returns:
        Shape ``(N,)``; zero where all answers are right, or all wrong.

    Example:
        >>> table = torch.tensor([[4.0], [0.0], [1.0], [3.0]], dtype=torch.float64)
        >>> uses, tokens = torch.tensor([[4.0], [0.0]]), torch.tensor([[50.0], [30.0]])
        >>> [key_token_values(table, uses, tokens, f).round(decimals=3).item() for f in (0.0, 1.0)]
        [0.345, 1.0]

    """
    a, b, c, d = table
    p = fisher_p_values(table)
    strength = (-2 * p).exp().where(p < 1 - 1e-9, 0) + information_gain(table)
    share, saturation = uses / tokens, 1 + 2 * tokens / tokens.sum(0)
    right, wrong = 3 * share / (share + saturation)
    direction = (a / (a + c)).sqrt().asin() - (b / (b + d)).sqrt().asin()
    direction = direction + frequency * (right / (wrong + 1e-5) - wrong / (right + 1e-5))
    return (strength * direction / 4).tanh().where((a + c > 0) & (b + d > 0), 0)


def key_token_credit(
    verdicts: Tensor, completion_ids: Tensor, mask: Tensor, group_size: int, frequency: float
) -> Tensor:
    """Return :func:`key_token_values` of every token in its group; the last token of a completion gets none.

    The authors leave out the end token, by its id. Here it is the last one, whatever that is.

    Args:
        verdicts: 1 for right, 0 for wrong, anything else for neither, shape ``(B,)``.
        completion_ids: Token ids, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.
        frequency: Weight of the ratio of frequencies.

    Returns:
        Shape ``(B, T)`` float64; zero on answers that are neither.

    """
    sides = torch.stack([verdicts == 1, verdicts == 0])
    rows = torch.arange(len(mask), device=mask.device)[:, None].expand(mask.shape)
    used = mask & sides.any(0)[:, None]
    span = completion_ids.where(used, 0).max() + 1
    keys, place = ((rows // group_size) * span + completion_ids)[used].unique(return_inverse=True)
    pairs = (place * len(mask) + rows[used]).unique()  # a token and an answer that contains it
    present = class_counts(pairs // len(mask), sides[:, pairs % len(mask)], len(keys))
    uses = class_counts(place, sides[:, rows[used]], len(keys))
    members = torch.stack([sides.long(), sides * mask.sum(-1)]).view(2, 2, -1, group_size).sum(-1)
    answers, tokens = members[..., keys // span].double()
    values = key_token_values(torch.cat([present, answers - present]), uses, tokens, frequency)
    credit = torch.zeros(mask.shape, dtype=torch.float64, device=mask.device).masked_scatter(used, values[place])
    before_last = torch.arange(mask.shape[1], device=mask.device) < mask.sum(-1, keepdim=True) - 1
    return credit.where(before_last, 0)


class KTAE(
    CreditOperator,
    reads="advantages completion_ids correct judged",
    writes="advantages",
    neutral={"weight": 0.0},
    rewards="binary",
):
    """Add ``weight`` times :func:`key_token_credit` to the advantages, as in Sun et al. (2025, arXiv:2505.16826).

    Put ``GRPO(normalize_std=True)`` above it, as they do. Tokens that speak for right answers gain credit in wrong ones
    too.

    Args:
        weight: Largest credit that is added; 0 is the identity.
        frequency: Weight of the ratio of frequencies, 1 in the authors' code; 0 leaves counts of answers alone.

    """

    def __init__(self, weight: float = 1.0, frequency: float = 1.0) -> None:
        super().__init__()
        if not (weight >= 0 and frequency >= 0):
            raise ValueError(f"KTAE expects weight >= 0 and frequency >= 0, got {weight} and {frequency}.")
        self.weight, self.frequency = weight, frequency

    def assign(self, rollout: Rollout) -> Metrics:
        """Add; log the mean size of what is added, and the share of tokens that get 0.9 of the weight or more."""
        mask, ids, size = rollout.mask, rollout.completion_ids, rollout.group_size
        credit = key_token_credit(rollout.verdicts, ids, mask, size, self.frequency)
        rollout.advantages = (rollout.advantages + self.weight * credit).to(rollout.advantages.dtype)
        return {
            "added_mean": masked_mean(self.weight * credit.abs(), rollout.judged_mask),
            "saturated_fraction": masked_mean((credit.abs() > 0.9).double(), rollout.judged_mask),
        }

    def bound(self, above: float, group_size: int) -> float:
        """No token's value exceeds one."""
        return above + self.weight
