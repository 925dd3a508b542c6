"""Gaps of episodes: formulas that walk along the tokens of a row step over what an environment has said."""

import torch
from torch import Tensor


def number_places(mask: Tensor) -> Tensor:
    """Return the place of each token in a row without gaps: sampled tokens first, then the others, ``(B, T)`` int64.

    Args:
        mask: True on sampled tokens, with gaps where an environment has spoken, shape ``(B, T)`` bool.

    Example:
        >>> number_places(torch.tensor([[True, False, True, False]])).tolist()
        [[0, 2, 1, 3]]

    """
    counts = mask.cumsum(-1)
    other_places = torch.arange(mask.shape[-1], device=mask.device) - counts + counts[:, -1:]
    return torch.where(mask, counts - 1, other_places)


def close_gaps(values: Tensor, places: Tensor) -> Tensor:
    """Return values of tokens, ``(B, T)``, at their places, so that sampled neighbours stand side by side.

    Example:
        >>> close_gaps(torch.tensor([[5, 6, 7, 8]]), number_places(torch.tensor([[True, False, True, False]]))).tolist()
        [[5, 7, 6, 8]]

    """
    return torch.empty_like(values).scatter_(1, places, values)


def open_gaps(values: Tensor, places: Tensor) -> Tensor:
    """Return values that stand at places where the tokens do, ``(B, T)``: the reverse of :func:`close_gaps`."""
    return values.gather(1, places)
