"""Gaps of episodes: formulas that walk along the tokens of a row step over what an environment has said."""

import torch
from torch import Tensor


def number_places(mask: Tensor) -> Tensor:
    """Return the place that each token has once its row is closed up: sampled tokens first, then the others.

    Args:
        mask: True on sampled tokens, with gaps where an environment has spoken, shape ``(B, T)`` bool.

    Returns:
        Shape ``(B, T)`` int64; where there are no gaps, the number of the column.

    Example:
        >>> number_places(torch.tensor([[True, False, True, False]])).tolist()
        [[0, 2, 1, 3]]

    """
    sampled = mask.cumsum(-1)
    others = torch.arange(mask.shape[-1], device=mask.device) - sampled + sampled[:, -1:]
    return torch.where(mask, sampled - 1, others)


def close_gaps(values: Tensor, places: Tensor) -> Tensor:
    """Return values of tokens at their places, so that sampled neighbours stand side by side.

    Args:
        values: Values of tokens, shape ``(B, T)`` or ``(B, T, D)``.
        places: Places by :func:`number_places`, shape ``(B, T)``.

    Example:
        >>> mask = torch.tensor([[True, False, True, False]])
        >>> close_gaps(torch.tensor([[5, 6, 7, 8]]), number_places(mask)).tolist()
        [[5, 7, 6, 8]]

    """
    return torch.empty_like(values).scatter_(1, _expand_places(places, values), values)


def open_gaps(values: Tensor, places: Tensor) -> Tensor:
    """Return values that stand at their places where the tokens do: the reverse of :func:`close_gaps`.

    Example:
        >>> mask = torch.tensor([[True, False, True, False]])
        >>> open_gaps(torch.tensor([[5, 7, 6, 8]]), number_places(mask)).tolist()
        [[5, 6, 7, 8]]

    """
    return values.gather(1, _expand_places(places, values))


def _expand_places(places: Tensor, values: Tensor) -> Tensor:
    return places if values.ndim == 2 else places[..., None].expand(values.shape)
