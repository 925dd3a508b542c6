"""A cache of keys and values in memory that is allocated once, and attention of one query per row to it."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


class KeyValueCache(ABC):
    """Keys and values of one layer: B rows, K heads, H wide, room for L + T tokens.

    Args:
        keys: Keys of every context, shape ``(P, K, L, H)``.
        values: Values of every context, shape ``(P, K, L, H)``.
        context_numbers: Number of the context that each row continues, shape ``(B,)``.
        room: Number of tokens that may follow.

    """

    along: int = -2
    """The dimension of the tokens in the keys; in the values it is the last but one."""

    def __init__(self, keys: Tensor, values: Tensor, context_numbers: Tensor, room: int) -> None:
        keys = keys if self.along == -2 else keys.mT
        self.keys, self.values = (
            _copy_rows_with_room(keys, context_numbers, room, self.along),
            _copy_rows_with_room(values, context_numbers, room, -2),
        )

    def write_token(self, keys_values: Tensor, column: int | Tensor) -> None:
        """Store the keys and values of one token per row, shape ``(B, 2, K, H)``, at a column, or one of shape (1,)."""
        if isinstance(column, Tensor):
            self.keys.index_copy_(self.along, column, keys_values[:, 0].unsqueeze(self.along))
            self.values.index_copy_(-2, column, keys_values[:, 1].unsqueeze(-2))
            return
        self.keys.select(self.along, column).copy_(keys_values[:, 0])
        self.values[:, :, column] = keys_values[:, 1]

    @abstractmethod
    def attend(self, queries: Tensor, bias: Tensor, scale: float) -> Tensor:
        """Return the attention output of one query per row, shape ``(B, Q * H)``.

        Args:
            queries: Queries, shape ``(B, Q, H)``; those that share a head of keys lie side by side.
            bias: Bias added to the scores; its width is the number of tokens attended to, shape ``(B * K, 1, C)``.
            scale: Factor by which the scores are multiplied.

        """

    def clear_room(self, length: int) -> None:
        """Set all but the first ``length`` tokens of every row to zero."""
        room = self.values.shape[2] - length
        self.keys.narrow(self.along, length, room).zero_()
        self.values[:, :, length:].zero_()

    def keep_rows(self, rows: Tensor, length: int) -> None:
        """Keep some rows, shape ``(N,)``, and the first ``length`` tokens of each."""
        room = self.values.shape[2] - length
        self.keys = _copy_rows_with_room(self.keys.narrow(self.along, 0, length), rows, room, self.along)
        self.values = _copy_rows_with_room(self.values[:, :, :length], rows, room, -2)


class MatmulCache(KeyValueCache):
    """Attention as two products, with transposed keys: the fewest operations in float32."""

    along = -1

    def attend(self, queries: Tensor, bias: Tensor, scale: float) -> Tensor:
        """Return the attention output of one query per row."""
        rows, length = len(queries), bias.shape[-1]
        query_groups = queries.reshape(len(bias), -1, queries.shape[-1])
        scores = torch.baddbmm(bias, query_groups, self.keys[..., :length].flatten(0, 1), alpha=scale)
        return torch.bmm(scores.softmax(-1), self.values[:, :, :length].flatten(0, 1)).view(rows, -1)


class KernelCache(KeyValueCache):
    """Attention by torch's kernel, which accumulates products of few bits in more bits."""

    def attend(self, queries: Tensor, bias: Tensor, scale: float) -> Tensor:
        """Return the attention output of one query per row."""
        rows, heads, width = self.keys.shape[0], self.keys.shape[1], self.keys.shape[-1]
        query_groups, length = queries.reshape(rows, heads, -1, width), bias.shape[-1]
        keys, values = self.keys[:, :, :length], self.values[:, :, :length]
        output = scaled_dot_product_attention(
            query_groups, keys, values, bias.view(rows, heads, 1, length), scale=scale
        )
        return output.reshape(rows, -1)


def _copy_rows_with_room(tensor: Tensor, rows: Tensor, room: int, dim: int) -> Tensor:
    """Return some rows of a tensor, with ``room`` more entries at the end of a dimension."""
    shape = list(tensor.shape)
    shape[0], shape[dim] = len(rows), shape[dim] + room
    copy = tensor.new_empty(shape)
    copy.narrow(dim, 0, tensor.shape[dim]).copy_(tensor[rows])
    return copy
