"""Backward passes that are not those of the forward pass: one that computes it again, and one that is over by then."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def recompute_in_backward(compute: Callable[[], tuple[Tensor, ...]], weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Call ``compute`` without keeping its graph; the backward pass calls it again.

    Each backward pass is one of its own, unlike those of :func:`torch.utils.checkpoint.checkpoint`, so that layers
    that lie in parts are gathered for it. The result is the same.

    Args:
        compute: Function of the weights. Its outputs must be the same at each call.
        weights: Weights that have a gradient.

    """
    return _Recomputed.apply(compute, *weights)  # pyright: ignore[reportReturnType]


class _Recomputed(Function):
    """Outputs of a function, and its vector-Jacobian product by another forward pass."""

    @staticmethod
    def forward(ctx: Any, compute: Callable[[], tuple[Tensor, ...]], *weights: Tensor) -> tuple[Tensor, ...]:
        kind = weights[0].device.type
        ctx.compute, ctx.weights = compute, weights
        ctx.precision = kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)
        with torch.no_grad():
            return compute()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        kind, dtype, is_autocast = ctx.precision
        with torch.enable_grad(), torch.autocast(kind, dtype=dtype, enabled=is_autocast):
            outputs = ctx.compute()
        pairs = [(value, part) for value, part in zip(outputs, gradients, strict=True) if value.requires_grad]
        values, parts = zip(*pairs, strict=True)
        weight_gradients = torch.autograd.grad(values, ctx.weights, parts, allow_unused=True)
        return None, *weight_gradients


def attach_gradients(value: Tensor, gradients: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """Return a value whose backward pass gives the weights gradients that are known.

    Args:
        value: Scalar.
        gradients: Gradient of the value with respect to each weight.
        weights: Weights that have a gradient.

    """
    return _Known.apply(value, gradients, *weights)  # pyright: ignore[reportReturnType]


class _Known(Function):
    """A value and its gradient."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: Sequence[Tensor], *weights: Tensor) -> Tensor:
        ctx.gradients = gradients
        return value.clone()

    @staticmethod
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None, None, *torch._foreach_mul(list(ctx.gradients), factor)  # pyright: ignore[reportPrivateImportUsage]
