"""Weights of linear layers that read one input, side by side in one storage: one product takes all of them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


@torch.inference_mode(False)  # the first caller may be an evaluation, and its tensors may not be overwritten later
@torch.no_grad()
def join_weights(layers: Sequence[Any], spare_rows: int = 0) -> Tensor:
    """Return the frozen weights of some layers as one matrix; each layer's own becomes a view of it.

    The matrix takes no more memory than its spare rows, and is made once.

    Args:
        layers: Linear layers without adapters, with E rows of weights in all.
        spare_rows: Rows below the weights, for the caller to fill.

    Returns:
        Shape ``(E + spare_rows, D)``.

    """
    weights = [layer.weight for layer in layers]
    counts, rows = [len(weight) for weight in weights], sum(map(len, weights)) + spare_rows
    matrix = getattr(weights[0], "joined_matrix", None)
    if matrix is None or len(matrix) < rows or not _are_views(weights, matrix):
        matrix = weights[0].new_zeros(rows, weights[0].shape[1])
        for weight, part in zip(weights, matrix[: sum(counts)].split(counts), strict=True):
            part.copy_(weight)
            weight.data = part
        weights[0].joined_matrix = matrix
    return matrix[:rows]


def _are_views(weights: Sequence[Tensor], matrix: Tensor) -> bool:
    """Whether weights lie one after another at the beginning of a matrix."""
    place = matrix.data_ptr()
    for weight in weights:
        if weight.data_ptr() != place or weight.dtype != matrix.dtype:
            return False
        place += weight.nbytes
    return True
