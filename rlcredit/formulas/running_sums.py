"""Cumulative sums that are the same at every call."""

import warnings

import torch
from torch import Tensor


def running_sums(values: Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> Tensor:
    """Return cumulative sums, added in one order, on a GPU too.

    In deterministic mode torch refuses ``cumsum`` of floating-point numbers on CUDA, although its kernels then add in a
    fixed order; see https://github.com/pytorch/pytorch/issues/75240.

    Args:
        values: Numbers of any shape.
        dim: Dimension along which they are added.
        dtype: Precision of the sums; that of ``values`` if None.

    Returns:
        The shape of ``values``.

    Example:
        >>> running_sums(torch.tensor([1.0, 2.0, 3.0]))
        tensor([1., 3., 6.])

    """
    if not values.is_cuda or torch.get_deterministic_debug_mode() != ERROR_MODE:
        return values.cumsum(dim, dtype=dtype)
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings(action="ignore"):
            return values.cumsum(dim, dtype=dtype)
    finally:
        torch.use_deterministic_algorithms(True)


ERROR_MODE = 2
"""Debug mode of torch in which an operation without a fixed order is an error."""
