"""Statistics over the true positions of a mask; values at false positions never matter."""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.turns import find_read_lengths


def last_token_mask(mask: Tensor) -> Tensor:
    """Mark the last sampled token of each completion; nothing where there is none.

    Args:
        mask: True on sampled tokens, shape ``(B, T)``.

    Example:
        >>> import torch
        >>> last_token_mask(torch.tensor([[True, True, False], [True, False, True]])).int().tolist()
        [[0, 1, 0], [0, 0, 1]]

    """
    return mask & (torch.arange(1, mask.shape[1] + 1, device=mask.device) == find_read_lengths(mask)[:, None])


def masked_sum(values: Tensor, mask: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Sum ``values`` where ``mask`` is true.

    Args:
        values: Values of any shape; NaN or infinity under a false position is ignored.
        mask: Boolean mask, same shape.
        dim: Dimension to reduce; all of them if None.
        keepdim: Whether to keep the reduced dimension with size one; needs ``dim``.

    Example:
        >>> import torch
        >>> masked_sum(torch.tensor([1.0, 2.0, float("nan")]), torch.tensor([True, True, False]))
        tensor(3.)

    """
    terms = values.where(mask, 0)
    return terms.sum() if dim is None else terms.sum(dim, keepdim=keepdim)


def masked_mean(values: Tensor, mask: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Average ``values`` where ``mask`` is true; zero where no position is.

    Args:
        values: Values, any shape.
        mask: Boolean mask, same shape.
        dim: Dimension to reduce; all of them if None.
        keepdim: Whether to keep the reduced dimension with size one; needs ``dim``.

    Example:
        >>> import torch
        >>> masked_mean(torch.tensor([[1.0, 3.0, 9.0]]), torch.tensor([[True, True, False]]), dim=-1)
        tensor([2.])

    """
    count = mask.sum() if dim is None else mask.sum(dim, keepdim=keepdim)
    return masked_sum(values, mask, dim, keepdim) / count.clamp(min=1)


def masked_var(values: Tensor, mask: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the population variance of ``values`` where ``mask`` is true; zero where no position is.

    Args:
        values: Values, any shape.
        mask: Boolean mask, same shape.
        dim: Dimension to reduce; all of them if None.
        keepdim: Whether to keep the reduced dimension with size one; needs ``dim``.

    Example:
        >>> masked_var(torch.tensor([1.0, 3.0, 9.0]), torch.tensor([True, True, False]))
        tensor(1.)

    """
    mean = masked_mean(values, mask, dim, keepdim=dim is not None)
    return masked_mean((values - mean) ** 2, mask, dim, keepdim)


def variance_within_between(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Split the variance over tokens into that inside completions and that between their means; the sum is the whole.

    Args:
        values: One value per token, shape ``(B, T)``.
        mask: Boolean mask, same shape.

    Returns:
        Within and between, completions counted by their tokens.

    Example:
        >>> variance_within_between(torch.tensor([[1.0, 3.0], [6.0, 8.0]]), torch.ones(2, 2, dtype=torch.bool))
        (tensor(1.), tensor(6.2500))

    """
    means = masked_mean(values, mask, dim=-1, keepdim=True).expand_as(values)
    return masked_mean((values - means) ** 2, mask), masked_var(means, mask)


def masked_median(values: Tensor, mask: Tensor) -> Tensor:
    """Return the median of each row where ``mask`` is true, shape ``(..., 1)``; zero where no position is.

    Args:
        values: Values, shape ``(..., T)``.
        mask: Boolean mask, same shape.

    Example:
        >>> masked_median(torch.tensor([[4.0, 1.0, 2.0, 99.0]]), torch.tensor([[True, True, True, False]]))
        tensor([[2.]])

    """
    sorted_values = pad(values.where(mask, torch.inf), (0, 1), value=torch.inf).sort(-1).values  # a row may be empty
    count = mask.sum(-1, keepdim=True)
    low, high = ((count - 1) // 2).clamp(min=0), count // 2
    return ((sorted_values.gather(-1, low) + sorted_values.gather(-1, high)) / 2).where(count > 0, 0)


def masked_correlation(values: Tensor, others: Tensor, mask: Tensor) -> Tensor:
    """Return Pearson's correlation where ``mask`` is true; zero where one of the two does not vary.

    Args:
        values: Values, any shape.
        others: Other values, same shape.
        mask: Boolean mask, same shape.

    Example:
        >>> masked_correlation(torch.tensor([1.0, 2.0]), torch.tensor([5.0, 1.0]), torch.tensor([True, True]))
        tensor(-1.)

    """
    deviations, other_deviations = values - masked_mean(values, mask), others - masked_mean(others, mask)
    scale = (masked_mean(deviations**2, mask) * masked_mean(other_deviations**2, mask)).sqrt()
    return (masked_mean(deviations * other_deviations, mask) / scale).where(scale > 0, 0)


def masked_topk(values: Tensor, mask: Tensor, share: float, keep_ties: bool = False) -> Tensor:
    """Mark the largest values of each row: exactly ``max(1, floor(share * n))`` of its n true positions.

    Among equal values the first win. A threshold at the quantile would keep them all, however many there are.

    Args:
        values: Values, shape ``(..., T)``, finite where ``mask`` is true.
        mask: Boolean mask, same shape.
        share: Share of each row's true positions that is marked, in [0, 1].
        keep_ties: Whether to mark also whatever equals the smallest value marked, as a threshold would.

    Returns:
        Boolean, same shape; false wherever ``mask`` is.

    Example:
        >>> values, mask = torch.tensor([[0.0, 0.0, 5.0, 0.0, 9.0]]), torch.tensor([[True, True, True, True, False]])
        >>> masked_topk(values, mask, 0.5)
        tensor([[ True, False,  True, False, False]])
        >>> masked_topk(values, mask, 0.5, keep_ties=True)
        tensor([[ True,  True,  True,  True, False]])

    """
    candidates = values.where(mask, -torch.inf)
    order = candidates.argsort(dim=-1, descending=True, stable=True)
    rank = torch.empty_like(order).scatter_(
        -1, order, torch.arange(order.shape[-1], device=order.device).expand_as(order)
    )
    # 0.29 * 100 is 28.999... in binary, and means 29 tokens.
    count = (mask.sum(-1, keepdim=True).double() * share + 1e-9).floor().clamp(min=1)
    selection = (rank < count) & mask
    if not keep_ties:
        return selection
    edge = pad(values.where(selection, torch.inf), (0, 1), value=torch.inf).amin(-1, keepdim=True)  # a row may be empty
    return (candidates >= edge) & mask


def masked_quantiles(values: Tensor, mask: Tensor, quantiles: list[float]) -> list[Tensor]:
    """Return the nearest-rank quantiles of ``values`` where ``mask`` is true.

    Sorting, unlike :func:`torch.quantile`, has no limit on the number of values.

    Args:
        values: Values, any shape.
        mask: Boolean, same shape, true somewhere.
        quantiles: Numbers in [0, 1].

    Example:
        >>> import torch
        >>> masked_quantiles(torch.arange(5.0), torch.ones(5, dtype=torch.bool), [0.5, 1.0])
        [tensor(2.), tensor(4.)]

    """
    sorted_values = values[mask].sort().values
    return [sorted_values[round(q * (len(sorted_values) - 1))] for q in quantiles]


def damped_weights(values: Tensor, mask: Tensor, strength: float) -> Tensor:
    r"""Weight each token down by the size of its value; the weights of a completion average to one.

    .. math:: w_t = \frac{e^{-\lambda x_t}}{\frac{1}{T} \sum_j e^{-\lambda x_j}}

    Args:
        values: One value per token, shape ``(B, T)``; what all tokens have in common cancels.
        mask: True on sampled tokens, shape ``(B, T)``.
        strength: Strength :math:`\lambda`; 0 weights all tokens alike.

    Returns:
        Shape ``(B, T)``, zero outside the mask.

    Example:
        >>> import math, torch
        >>> values = torch.tensor([[0.0, math.log(3.0)]])
        >>> damped_weights(values, torch.ones(1, 2, dtype=torch.bool), strength=1.0)
        tensor([[1.5000, 0.5000]])

    """
    exponents = (-strength * values).where(mask, -torch.inf)
    largest = exponents.amax(-1, keepdim=True)
    weights = (exponents - largest.where(largest.isfinite(), 0)).exp()  # a row may be empty
    return weights / masked_mean(weights, mask, dim=-1, keepdim=True).clamp(min=1 / mask.shape[1])


Normalization = Literal["none", "zscore", "scale", "mad"]

FLAT_DEVIATION = 1e-5
"""Below this deviation, as a share of its mean size, a signal varies by rounding only."""


def completion_normalized(values: Tensor, mask: Tensor, normalization: Normalization) -> Tensor:
    r"""Scale each completion's values by its own deviation.

    ``none``: as they are. ``scale``: :math:`x / \sigma`, population deviation. ``mad``: :math:`x / (1.4826\,
    \mathrm{MAD})`, robust against outliers, ``scale`` where more than half of the values are equal. ``zscore``:
    :math:`(x - \bar x) / \sigma`; the centring turns every value below the mean negative. Flat completions stay as they
    are.

    Args:
        values: One value per token, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        normalization: Normalisation, one of the four.

    Returns:
        Shape ``(B, T)``.

    """
    require_choice("normalized", "normalization", normalization, get_args(Normalization))
    if normalization == "none":
        return values
    flat = FLAT_DEVIATION * masked_mean(values.abs(), mask, dim=-1, keepdim=True)
    scale = masked_var(values, mask, dim=-1, keepdim=True).sqrt()
    if normalization == "mad":
        robust = 1.4826 * masked_median((values - masked_median(values, mask)).abs(), mask)
        scale = robust.where(robust > flat, scale)
    centre = masked_mean(values, mask, dim=-1, keepdim=True) if normalization == "zscore" else 0.0
    return ((values - centre) / scale).where(scale > flat, values)


def following_windows(values: Tensor, length: int, fill: float = 0) -> Tensor:
    """Return each value with those that follow it, shape ``(B, T, length)``.

    Args:
        values: Shape ``(B, T)``.
        length: Values of a window.
        fill: What stands behind the last value.

    Example:
        >>> following_windows(torch.tensor([[1, 2, 3]]), length=2).tolist()
        [[[1, 2], [2, 3], [3, 0]]]

    """
    return pad(values, (0, length - 1), value=fill).unfold(-1, length, 1)
