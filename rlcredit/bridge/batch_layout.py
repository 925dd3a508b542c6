"""Where the rows and tokens of a trainer's batch lie in a rollout, and back."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class BatchLayout:
    """Map rows in any order, in groups of any size, with tokens anywhere, to a rollout and back.

    A rollout has equal groups of neighbouring rows, and tokens without gaps from the left. Where a group has fewer rows
    than the largest, the rollout has rows without a token and without a verdict, which count as not sampled.

    Args:
        mask: True on sampled tokens as the trainer has them, shape ``(B, S)`` bool.
        columns: Columns of the sampled tokens of each row from the left, then others, shape ``(B, T)`` int64.
        slots: Row of the rollout for each row of the trainer, shape ``(B,)`` int64.
        rows: Rows of the rollout.
        group_size: Rows of its groups.

    """

    mask: Tensor
    columns: Tensor
    slots: Tensor
    rows: int
    group_size: int

    @property
    def has_gaps(self) -> bool:
        """Whether tokens that were not sampled stand between sampled ones."""
        return bool((self.mask[:, 1:] > self.mask[:, :-1]).sum(-1).add(self.mask[:, 0].long()).gt(1).any())

    @property
    def placed_mask(self) -> Tensor:
        """True on the tokens of the rollout, shape ``(rows, T)`` bool."""
        lengths = self.place_rows(self.mask.sum(-1))
        return torch.arange(self.columns.shape[1], device=lengths.device) < lengths[:, None]

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
        >>> layout.slots.tolist(), layout.group_size, layout.has_gaps
        ([0, 2, 1], 2, True)
        >>> layout.place_tokens(torch.tensor([[1, 0, 3], [0, 0, 6], [7, 8, 9]])).tolist()
        [[1, 3, 0], [7, 8, 9], [6, 0, 0], [0, 0, 0]]

    """
    members: dict[Hashable, int] = {}
    places, numbers = [], {group: number for number, group in enumerate(dict.fromkeys(groups))}
    for group in groups:
        places.append((numbers[group], members.setdefault(group, 0)))
        members[group] += 1
    size = max(members.values())
    slots = torch.tensor([number * size + place for number, place in places], device=mask.device)
    width = max(1, int(mask.sum(-1).max()))
    columns = (~mask).to(torch.uint8).argsort(dim=1, stable=True)[:, :width]
    return BatchLayout(mask, columns, slots, size * len(numbers), size)
