"""Adapted linear layers with one input as products alone: no casts, no scaling, no sums of their own."""

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from rlcredit.policy.joined_weights import join_weights


class JoinedLinear:
    """Linear layers with the same input, computed as one product with the frozen weights and two with the adapters.

    Args:
        layers: Linear layers, plain or adapted by PEFT with one rank, whole or in 4 bits.

    """

    def __init__(self, layers: Sequence[Any]) -> None:
        self.bases = [getattr(layer, "base_layer", layer) for layer in layers]
        self.adapted = [layer for layer, base in zip(layers, self.bases, strict=True) if layer is not base]
        self.is_packed = hasattr(self.bases[0].weight, "quant_state")
        sizes = [base.out_features for base in self.bases]
        ends = itertools.accumulate(sizes, initial=0)
        columns = [slice(*bounds) for bounds in itertools.pairwise(ends)]
        self.columns = [
            part for part, layer, base in zip(columns, layers, self.bases, strict=True) if layer is not base
        ]
        self.bias = None
        if any(base.bias is not None for base in self.bases):
            self.bias = torch.cat([read_bias(base) for base in self.bases])

    @property
    def factors(self) -> list[Tensor]:
        """Factors A of all adapted layers, then factors B; none while the adapter is disabled."""
        if not self.adapted or self.adapted[0].disable_adapters:
            return []
        factors_a = [layer.lora_A["default"].weight for layer in self.adapted]
        return [*factors_a, *(layer.lora_B["default"].weight for layer in self.adapted)]

    @property
    def scale(self) -> float:
        """Factor of the adapters' outputs, alpha / r."""
        return self.adapted[0].scaling["default"]

    def read_weight(self) -> Tensor:
        """Return the frozen weights, shape ``(E, D)``; those in 4 bits are unpacked anew at each call."""
        if not self.is_packed:
            return join_weights(self.bases) if len(self.bases) > 1 else self.bases[0].weight.detach()
        from bitsandbytes.functional import dequantize_4bit  # noqa: PLC0415

        return torch.cat([dequantize_4bit(base.weight.data, base.weight.quant_state) for base in self.bases])

    def __call__(self, x: Tensor, factors: Sequence[Tensor], residual: Tensor | None = None) -> Tensor:
        """Return the outputs side by side, on top of a residual stream if there is one, shape ``(N, E)``.

        Args:
            x: Inputs, shape ``(N, D)``.
            factors: Factors A of the adapted layers, then B; in the precision in which they act.
            residual: Residual stream, shape ``(N, E)``; it is not overwritten.

        """
        return _AdaptedProduct.apply(x, residual, self, *factors)  # pyright: ignore[reportReturnType]


class _AdaptedProduct(Function):
    r"""Return :math:`r + x W^T + b + s\,(x A^T) B^T`; gradients go to x, r, A and B."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, residual: Tensor | None, linear: JoinedLinear, *factors: Tensor) -> Tensor:
        weight, count = linear.read_weight(), len(factors) // 2
        start = linear.bias if residual is None else residual
        y = x @ weight.T if start is None else torch.addmm(start, x, weight.T)
        if residual is not None and linear.bias is not None:
            y += linear.bias
        ctx.linear, ctx.has_residual, product, joined_a = linear, residual is not None, None, None
        if factors:
            joined_a = factors[0] if count == 1 else torch.cat(factors[:count])
            product = torch.addmm(joined_a.new_empty(1), x.to(joined_a.dtype), joined_a.T, beta=0, alpha=linear.scale)
            parts = zip(_split_columns(y, linear), product.chunk(count, -1), factors[count:], strict=True)
            for part, part_product, factor_b in parts:
                _add_product(part, part_product, factor_b.T)
        ctx.save_for_backward(x, product, joined_a, *factors[count:])
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, product, joined_a, *factors_b = ctx.saved_tensors
        linear, count, factor_gradients = ctx.linear, len(factors_b), []
        product_gradient = None
        if product is not None:
            product_gradient = torch.empty_like(product)
            parts = [part.to(product.dtype) for part in _split_columns(gradient, linear)]
            spaces = zip(parts, factors_b, product_gradient.chunk(count, -1), strict=True)
            for part, factor_b, space in spaces:
                torch.addmm(space.new_empty(1), part, factor_b, beta=0, alpha=linear.scale, out=space)
            pairs = zip(parts, product.chunk(count, -1), strict=True)
            gradients_b = [part.T @ part_product for part, part_product in pairs]
            factor_gradients = [*(product_gradient.T @ x.to(product.dtype)).chunk(count), *gradients_b]
        x_gradient = None
        if ctx.needs_input_grad[0]:
            x_gradient = gradient @ linear.read_weight()
            if product_gradient is not None:
                _add_product(x_gradient, product_gradient, joined_a)
        return x_gradient, gradient if ctx.has_residual else None, None, *factor_gradients


def read_bias(base: Any) -> Tensor:
    """Return the frozen bias of a linear layer without adapter, zero if it has none."""
    return base.weight.new_zeros(base.out_features) if base.bias is None else base.bias.detach()


def _split_columns(y: Tensor, linear: JoinedLinear) -> list[Tensor]:
    """Return the outputs of the adapted layers, as views."""
    return [y[:, columns] for columns in linear.columns]


def _add_product(total: Tensor, rows: Tensor, columns: Tensor) -> None:
    """Add a product to a tensor in place, in the precision of the product if that is another."""
    if rows.dtype == total.dtype:
        total.addmm_(rows, columns)
    else:
        total += rows @ columns


class CastFactors(Function):
    """The adapter's factors in another precision, all in one go; their gradients come back in float32."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *factors: Tensor) -> tuple[Tensor, ...]:
        """Return copies of the factors."""
        ctx.dtypes = [factor.dtype for factor in factors]
        copies = [torch.empty_like(factor, dtype=dtype) for factor in factors]
        torch._foreach_copy_(  # pyright: ignore[reportPrivateImportUsage]
            copies, list(factors)
        )
        return tuple(copies)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the gradients in the factors' own precision."""
        copies = [
            torch.empty_like(gradient, dtype=dtype) for gradient, dtype in zip(gradients, ctx.dtypes, strict=True)
        ]
        torch._foreach_copy_(  # pyright: ignore[reportPrivateImportUsage]
            copies, list(gradients)
        )
        return None, *copies
