"""KTAE: tokens that right answers contain and wrong ones do not gain credit wherever they stand."""

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.contingency_tables import answer_counts, class_counts, key_token_values
from rlcredit.formulas.masked import last_token_mask, masked_mean


def key_token_credit(
    verdicts: Tensor, completion_ids: Tensor, mask: Tensor, group_size: int, frequency: float
) -> Tensor:
    """Return the strength with which a token speaks for right answers in its group; a completion's last gets nothing.

    Values are those of :func:`rlcredit.formulas.contingency_tables.key_token_values`.
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
    token_mask = mask & sides.any(0)[:, None]
    span = completion_ids.where(token_mask, 0).max() + 1
    keys, place = ((rows // group_size) * span + completion_ids)[token_mask].unique(return_inverse=True)
    present = answer_counts(place, rows[token_mask], sides, len(keys))
    uses = class_counts(place, sides[:, rows[token_mask]], len(keys))
    members = torch.stack([sides.long(), sides * mask.sum(-1)]).view(2, 2, -1, group_size).sum(-1)
    answers, tokens = members[..., keys // span].double()
    values = key_token_values(torch.cat([present, answers - present]), uses, tokens, frequency)
    credit = torch.zeros(mask.shape, dtype=torch.float64, device=mask.device).masked_scatter(token_mask, values[place])
    return credit.where(~last_token_mask(mask), 0)


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

    def bound(self, limit: float, group_size: int) -> float:
        """No token's value exceeds one."""
        return limit + self.weight
