"""Whether tensors are finite, and the name of the first one that is not."""

from collections.abc import Iterable

import torch
from torch import Tensor

FLOAT_TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""Types that can hold NaN and infinity; quantized storages hold integers, and are passed over."""


def is_finite(values: Tensor) -> bool:
    """Whether a tensor holds neither NaN nor infinity, in one pass that allocates nothing of its size.

    Example:
        >>> is_finite(torch.tensor([1.0, torch.nan])), is_finite(torch.tensor([1, 2])), is_finite(torch.empty(0))
        (False, True, True)

    """
    if values.dtype not in FLOAT_TYPES or values.numel() == 0:
        return True
    smallest, largest = values.detach().aminmax()  # NaN is both
    return bool(smallest.isfinite() & largest.isfinite())


def find_non_finite_name(tensors: Iterable[tuple[str, Tensor]]) -> str | None:
    """Return the name of the first tensor that is not finite, None if all are.

    Example:
        >>> find_non_finite_name([("a", torch.zeros(2)), ("b", torch.tensor([torch.inf]))])
        'b'

    """
    return next((name for name, values in tensors if not is_finite(values)), None)
