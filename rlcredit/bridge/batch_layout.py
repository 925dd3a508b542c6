"""Where the rows and tokens of a trainer's batch lie in a rollout, and back."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class BatchLayout:
    """Map rows in any order, in groups of any size, with tokens anywhere, to a rollout and back.

    A rollout has equal groups of neighbouring rows, and tokens from the left: from the first sampled one of a row to
    its last, with what an environment has said between. Where a group has fewer rows than the largest, the rollout has
    rows without a token and without a verdict, which count as not sampled.

    Args:
        mask: True on sampled tokens as the trainer has them, shape ``(B, S)`` bool.
        span: True from the first sampled token of each row to its last, shape ``(B, S)`` bool.
        columns: Columns of each row's span from the left, then others, shape ``(B, T)`` int64.
        slots: Row of the rollout for each row of the trainer, shape ``(B,)`` int64.
        rows: Rows of the rollout.
        group_size: Rows of its groups.

    """

    mask: Tensor
    span: Tensor
    columns: Tensor
    slots: Tensor
    rows: int
    group_size: int

    @property
    def placed_mask(self) -> Tensor:
        """True on the sampled tokens of the rollout, shape ``(rows, T)`` bool."""
        return self.place_rows(self.mask.gather(1, self.columns))

    def place_rows(self, values: Tensor, fill: float = 0) -> Tensor:
        """Return values of rows in the order of the rollout.

        Args:
            values: One value, or several, for each row of the trainer, shape ``(B, ...)``.
            fill: Value of rows that the trainer does not have.

        """
        return values.new_full((self.rows, *values.shape[1:]), fill).index_copy_(0, self.slots, values)

    def place_tokens(self, values: Tensor) -> Tensor:
        """Return values of tokens as the rollout has them, zero outside its mask, shape ``(rows, T)``."""
        return self.place_rows(values.where(self.mask, 0).gather(1, self.columns))

    def place_ids(self, token_ids: Tensor) -> Tensor:
        """Return token ids as the rollout has them, those between sampled ones too, shape ``(rows, T)``."""
        return self.place_rows(token_ids.where(self.span, 0).gather(1, self.columns))

    def restore_tokens(self, values: Tensor) -> Tensor:
        """Return values of the rollout's tokens as the trainer has them, zero outside its mask, shape ``(B, S)``."""
        spread = values.new_zeros(self.mask.shape).scatter_(1, self.columns, values[self.slots])
        return spread.where(self.mask, 0)


def lay_out_batch(mask: Tensor, groups: Sequence[Hashable]) -> BatchLayout:
    """Return the layout of a batch; groups come in the order in which they first appear.

    Args:
        mask: True on sampled tokens, shape ``(B, S)`` bool.
        groups: Group of each row: rows of equal values answer one prompt.

    Example:
        >>> layout = lay_out_batch(torch.tensor([[True, False, True], [False, False, True], [True, True, True]]), "aba")
        >>> layout.slots.tolist(), layout.group_size
        ([0, 2, 1], 2)
        >>> layout.place_ids(torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])).tolist()
        [[1, 2, 3], [7, 8, 9], [6, 0, 0], [0, 0, 0]]

    """
    members: dict[Hashable, int] = {}
    places, numbers = [], {group: number for number, group in enumerate(dict.fromkeys(groups))}
    for group in groups:
        places.append((numbers[group], members.setdefault(group, 0)))
        members[group] += 1
    size = max(members.values())
    slots = torch.tensor([number * size + place for number, place in places], device=mask.device)
    span = mask.cummax(-1).values & mask.flip(-1).cummax(-1).values.flip(-1)
    width = max(1, int(span.sum(-1).max()))
    columns = (~span).to(torch.uint8).argsort(dim=1, stable=True)[:, :width]
    return BatchLayout(mask, span, columns, slots, size * len(numbers), size)
