"""A cache of keys and values in memory that is allocated once, and attention of one query per row to it."""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


class MatmulCache:
    """Keys and values of one layer: B rows, K heads, H wide, room for L + T tokens.

    Attention is two products, with transposed keys: the fewest operations in float32.

    Args:
        keys_values: Keys and values of every context, shape ``(2, P, K, L, H)``.
        context_numbers: Number of the context that each row continues, shape ``(B,)``.
        room: Number of tokens that may follow.

    """

    def __init__(self, keys_values: Tensor, context_numbers: Tensor, room: int) -> None:
        self.keys = _add_room(keys_values[0].mT[context_numbers], room, -1)
        self.values = _add_room(keys_values[1][context_numbers], room, -2)

    def write_token(self, keys_values: Tensor, column: int | Tensor) -> None:
        """Store the keys and values of one token per row, shape ``(B, 2, K, H)``, at a column, or one of shape (1,)."""
        if isinstance(column, Tensor):
            self.keys.index_copy_(-1, column, keys_values[:, 0].unsqueeze(-1))
            self.values.index_copy_(-2, column, keys_values[:, 1].unsqueeze(-2))
            return
        self.keys.select(-1, column).copy_(keys_values[:, 0])
        self.values[:, :, column] = keys_values[:, 1]

    def attend(self, queries: Tensor, bias: Tensor, scale: float) -> Tensor:
        """Return the attention output of one query per row, shape ``(B, Q * H)``.

        Args:
            queries: Queries, shape ``(B, Q, H)``; those that share a head of keys lie side by side.
            bias: Bias added to the scores; its width is the number of tokens attended to, shape ``(B * K, 1, C)``.
            scale: Factor by which the scores are multiplied.

        """
        rows, length = len(queries), bias.shape[-1]
        query_groups = queries.reshape(len(bias), -1, queries.shape[-1])
        scores = torch.baddbmm(bias, query_groups, self.keys[..., :length].flatten(0, 1), alpha=scale)
        return torch.bmm(scores.softmax(-1), self.values[:, :, :length].flatten(0, 1)).view(rows, -1)

    def clear_room(self, length: int) -> None:
        """Set all but the first ``length`` tokens of every row to zero."""
        self.keys[..., length:].zero_()
        self.values[:, :, length:].zero_()

    def keep_rows(self, rows: Tensor, length: int) -> None:
        """Keep some rows, shape ``(N,)``, and the first ``length`` tokens of each."""
        room = self.values.shape[2] - length
        self.keys = _add_room(self.keys[..., :length][rows], room, -1)
        self.values = _add_room(self.values[:, :, :length][rows], room, -2)


class KernelCache:
    """The same in fewer bits, with torch's attention kernel, which accumulates products in more bits.

    Keys and values lie in one tensor, so that one operation writes both. Arguments are those of :class:`MatmulCache`.
    """

    def __init__(self, keys_values: Tensor, context_numbers: Tensor, room: int) -> None:
        self.pair = _add_room(keys_values[:, context_numbers], room, -2)

    def write_token(self, keys_values: Tensor, column: int | Tensor) -> None:
        """Store the keys and values of one token per row."""
        token = keys_values.transpose(0, 1).unsqueeze(-2)
        if isinstance(column, Tensor):
            self.pair.index_copy_(-2, column, token)
        else:
            self.pair.narrow(-2, column, 1).copy_(token)

    def attend(self, queries: Tensor, bias: Tensor, scale: float) -> Tensor:
        """Return the attention output of one query per row."""
        (rows, heads), (length, width) = self.pair.shape[1:3], (bias.shape[-1], queries.shape[-1])
        query_groups, row_bias = queries.reshape(rows, heads, -1, width), bias.view(rows, heads, 1, length)
        keys, values = self.pair[..., :length, :]
        output = scaled_dot_product_attention(query_groups, keys, values, row_bias, scale=scale)
        return output.reshape(len(queries), -1)

    def clear_room(self, length: int) -> None:
        """Set all but the first tokens of every row to zero."""
        self.pair[..., length:, :].zero_()

    def keep_rows(self, rows: Tensor, length: int) -> None:
        """Keep some rows and their first tokens."""
        self.pair = _add_room(self.pair[:, rows, :, :length], self.pair.shape[-2] - length, -2)


KeyValueCache = MatmulCache | KernelCache


def _add_room(tensor: Tensor, room: int, dim: int) -> Tensor:
    """Return a copy with ``room`` more entries at the end of a dimension."""
    shape = list(tensor.shape)
    shape[dim] += room
    copy = tensor.new_empty(shape)
    copy.narrow(dim, 0, tensor.shape[dim]).copy_(tensor)
    return copy
