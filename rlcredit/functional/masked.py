"""Statistics over the true positions of a mask; what stands under a false position never matters."""

from torch import Tensor


def masked_sum(values: Tensor, mask: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Sum ``values`` where ``mask`` is true.

    Args:
        values: any shape; NaN or infinity under a false position is ignored.
        mask: boolean, same shape.
        dim: the dimension to reduce; all of them if None.
        keepdim: keep the reduced dimension with size one; needs ``dim``.

    Example:
        >>> import torch
        >>> masked_sum(torch.tensor([1.0, 2.0, float("nan")]), torch.tensor([True, True, False]))
        tensor(3.)

    """
    kept = values.where(mask, 0)
    return kept.sum() if dim is None else kept.sum(dim, keepdim=keepdim)


def masked_mean(values: Tensor, mask: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Average ``values`` where ``mask`` is true; zero where no position is.

    Args:
        values: any shape.
        mask: boolean, same shape.
        dim: the dimension to reduce; all of them if None.
        keepdim: keep the reduced dimension with size one; needs ``dim``.

    Example:
        >>> import torch
        >>> masked_mean(torch.tensor([[1.0, 3.0, 9.0]]), torch.tensor([[True, True, False]]), dim=-1)
        tensor([2.])

    """
    count = mask.sum() if dim is None else mask.sum(dim, keepdim=keepdim)
    return masked_sum(values, mask, dim, keepdim) / count.clamp(min=1)


def masked_quantiles(values: Tensor, mask: Tensor, quantiles: list[float]) -> list[Tensor]:
    """Return the nearest-rank quantiles of ``values`` where ``mask`` is true.

    Sorting, unlike :func:`torch.quantile`, has no limit on the number of values.

    Args:
        values: any shape.
        mask: boolean, same shape, true somewhere.
        quantiles: numbers in [0, 1].

    Example:
        >>> import torch
        >>> masked_quantiles(torch.arange(5.0), torch.ones(5, dtype=torch.bool), [0.5, 1.0])
        [tensor(2.), tensor(4.)]

    """
    ordered = values[mask].sort().values
    return [ordered[round(q * (len(ordered) - 1))] for q in quantiles]
