"""Weights of linear layers that read one input, side by side in one storage: one product takes all of them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


@torch.no_grad()
def join_weights(layers: Sequence[Any], spare_rows: int = 0) -> Tensor:
    """Return the frozen weights of some layers as one matrix; each layer's own becomes a view of it.

    Nothing is copied a second time, and the matrix takes no more memory than its spare rows.

    Args:
        layers: Linear layers without adapters, with E rows of weights in all.
        spare_rows: Rows below the weights, for the caller to fill.

    Returns:
        Shape ``(E + spare_rows, D)``.

    """
    weights = [layer.weight for layer in layers]
    counts, width = [len(weight) for weight in weights], weights[0].shape[1]
    place, rows = weights[0].data_ptr(), sum(counts) + spare_rows
    is_joined = rows * width <= _count_elements_behind(weights[0])
    for weight in weights:
        is_joined = is_joined and weight.is_contiguous() and weight.data_ptr() == place
        place += weight.nbytes
    if is_joined:
        return weights[0].detach().as_strided((rows, width), (width, 1))
    joined = weights[0].new_zeros(rows, width)
    for weight, part in zip(weights, joined[: sum(counts)].split(counts), strict=True):
        part.copy_(weight)
        weight.data = part
    return joined


def _count_elements_behind(weight: Tensor) -> int:
    """Return the number of elements in a weight's storage from its first on."""
    return weight.untyped_storage().nbytes() // weight.element_size() - weight.storage_offset()
