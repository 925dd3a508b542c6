"""Conflict mask: how right and wrong answers alike begin and end, only the right ones are trained on."""

import torch
from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.gaps import close_gaps, number_places, open_gaps
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.prefixes import companion_rows


def leading_conflicts(signs: Tensor, completion_ids: Tensor, group_size: int) -> Tensor:
    """Mark the tokens of each completion up to the first that no opponent has at the same place.

    Args:
        signs: Sign of each token's credit, shape ``(B, T)``; zero on tokens that do not count.
        completion_ids: Token ids, shape ``(B, T)``.
        group_size: Completions per prompt, G.

    Returns:
        Boolean, shape ``(B, T)``.

    Example:
        >>> leading_conflicts(torch.tensor([[1, 1], [-1, -1]]), torch.tensor([[5, 6], [5, 7]]), group_size=2).tolist()
        [[True, False], [True, False]]

    """
    conflicts = torch.zeros_like(signs, dtype=torch.bool)
    for companion in companion_rows(len(signs), group_size, signs.device):
        conflicts = conflicts | ((completion_ids == completion_ids[companion]) & (signs * signs[companion] < 0))
    return conflicts.cumprod(-1).bool()


def conflict_weights(
    advantages: Tensor, completion_ids: Tensor, mask: Tensor, group_size: int, positive: float, negative: float
) -> Tensor:
    """Weight tokens that a completion with credit of the other sign has at the same place, near both ends.

    Places are counted from the start for the leading run of such tokens, from the end for the trailing one; each run
    ends at the first token that is in no conflict. In both runs, the weight counts twice, as in the authors' code.

    Args:
        advantages: Advantage of each token, shape ``(B, T)``.
        completion_ids: Token ids, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.
        positive: Weight of tokens with positive credit; 1 leaves them.
        negative: Weight of tokens with negative credit; 1 leaves them.

    Returns:
        Shape ``(B, T)``; one on tokens in no conflict.

    Example:
        >>> credit = torch.tensor([[0.5] * 4, [-0.5] * 4])
        >>> ids = torch.tensor([[1, 2, 3, 5], [1, 2, 4, 5]])
        >>> conflict_weights(credit, ids, ids > 0, group_size=2, positive=2.0, negative=0.0)
        tensor([[2., 2., 1., 2.],
                [0., 0., 1., 0.]])

    """
    places = number_places(mask)
    advantages, completion_ids, mask = (close_gaps(values, places) for values in (advantages, completion_ids, mask))
    signs = advantages.sign().where(mask, 0)
    place, length = torch.arange(mask.shape[1], device=mask.device), mask.sum(-1, keepdim=True)
    mirror = (length - 1 - place).where(mask, place)  # the last token first; the same once more turns it back
    leading = leading_conflicts(signs, completion_ids, group_size)
    trailing = leading_conflicts(signs.gather(-1, mirror), completion_ids.gather(-1, mirror), group_size)
    runs = leading.to(advantages.dtype) + trailing.gather(-1, mirror)
    weight = torch.full_like(advantages, negative).where(signs < 0, positive)
    return open_gaps(weight**runs, places)


class ConflictMask(
    CreditOperator,
    reads="advantages completion_ids",
    writes="advantages",
    neutral={"positive": 1.0, "negative": 1.0},
):
    """Multiply advantages by :func:`conflict_weights`, as in GTPO of Simoni et al. (2025, arXiv:2508.03772).

    That GTPO shares its name with ``GTPO`` here and nothing else. Their entropy filter and their division of the loss
    by the number of tokens in conflict, in their code those of the longer run, are left out.

    Args:
        positive: Weight of tokens in conflict with positive credit.
        negative: Weight of tokens in conflict with negative credit.

    """

    def __init__(self, positive: float = 2.0, negative: float = 0.0) -> None:
        super().__init__()
        if not (positive >= 0 and negative >= 0):
            raise ValueError(f"ConflictMask expects weights >= 0, got {positive} and {negative}.")
        self.positive, self.negative = positive, negative

    def assign(self, rollout: Rollout) -> Metrics:
        """Weight; log the share of tokens with credit whose weight is not one, and the mean weight."""
        weights = conflict_weights(
            rollout.advantages, rollout.completion_ids, rollout.mask, rollout.group_size, **self.arguments
        )
        credit_mask = rollout.mask & (rollout.advantages != 0)
        rollout.advantages = rollout.advantages * weights
        return {
            "weighted_fraction": masked_mean((weights != 1).float(), credit_mask),
            "weight_mean": masked_mean(weights, credit_mask),
        }

    def bound(self, limit: float, group_size: int) -> float:
        """A token in both runs has the larger weight twice."""
        return limit * max(1.0, self.positive, self.negative) ** 2
