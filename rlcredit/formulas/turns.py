"""Turns of episodes: values of turns on tokens, and of tokens on turns; K turns at most."""

import torch
from torch import Tensor
from torch.nn.functional import pad


def number_turns(mask: Tensor) -> Tensor:
    """Return the number of the turn of each sampled token, -1 elsewhere; turns are what lies between gaps.

    Args:
        mask: True on sampled tokens, shape ``(B, T)`` bool.

    Example:
        >>> number_turns(torch.tensor([[True, True, False, True, False]])).tolist()
        [[0, 0, -1, 1, -1]]

    """
    starts = mask & ~pad(mask, (1, 0))[:, :-1]
    return (starts.cumsum(-1) - 1).where(mask, -1)


def count_turns(turn: Tensor) -> Tensor:
    """Return the turns of each row, zero where nothing was sampled, shape ``(B,)`` int64.

    Args:
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.

    """
    return pad(turn, (0, 1), value=-1).amax(-1) + 1


def mark_turns(turn: Tensor, turns: int) -> Tensor:
    """Mark the turns that each row has, shape ``(B, K)`` bool.

    Args:
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.
        turns: Number of turns K.

    """
    return torch.arange(turns, device=turn.device) < count_turns(turn)[:, None]


def spread_turns(values: Tensor, turn: Tensor) -> Tensor:
    """Return the value of its turn on every sampled token, zero elsewhere, shape ``(B, T)``.

    Args:
        values: Value of each turn, shape ``(B, K)``.
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.

    Example:
        >>> spread_turns(torch.tensor([[1.0, -2.0]]), torch.tensor([[0, 0, -1, 1, -1]])).tolist()
        [[1.0, 1.0, 0.0, -2.0, 0.0]]

    """
    return values.gather(1, turn.clamp(min=0)).where(turn >= 0, 0)


def sum_turns(values: Tensor, turn: Tensor, turns: int) -> Tensor:
    """Return the sum of the values of each turn's tokens, shape ``(B, K)``.

    Args:
        values: Value of each token, shape ``(B, T)``; those outside of turns do not count.
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.
        turns: Number of turns K.

    Example:
        >>> sum_turns(torch.tensor([[1.0, 2.0, 9.0, 4.0]]), torch.tensor([[0, 0, -1, 1]]), turns=3).tolist()
        [[3.0, 4.0, 0.0]]

    """
    sums = values.new_zeros(len(values), turns + 1)
    return sums.scatter_add(1, turn.where(turn >= 0, turns), values)[:, :turns]


def find_turn_ends(turn: Tensor) -> Tensor:
    """Return true on the last token of every turn, shape ``(B, T)`` bool.

    Args:
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.

    Example:
        >>> find_turn_ends(torch.tensor([[0, 0, -1, 1, 2, -1]])).tolist()
        [[False, True, False, True, True, False]]

    """
    return (turn >= 0) & (turn != pad(turn, (0, 1), value=-1)[:, 1:])


def find_turn_starts(turn: Tensor) -> Tensor:
    """Return true on the first token of every turn, shape ``(B, T)`` bool; arguments as for :func:`find_turn_ends`.

    Example:
        >>> find_turn_starts(torch.tensor([[0, 0, -1, 1, 2, -1]])).tolist()
        [[True, False, False, True, True, False]]

    """
    return (turn >= 0) & (turn != pad(turn, (1, 0), value=-1)[:, :-1])


def find_read_lengths(mask: Tensor) -> Tensor:
    """Return the tokens up to the last sampled one of each row, which a policy reads, shape ``(B,)`` int64.

    Args:
        mask: True on sampled tokens, with gaps where an environment has spoken, shape ``(B, T)`` bool.

    Example:
        >>> find_read_lengths(torch.tensor([[True, False, True, False], [False] * 4])).tolist()
        [3, 0]

    """
    return pad(mask * torch.arange(1, mask.shape[-1] + 1, device=mask.device), (0, 1)).amax(-1)


def place_last(values: Tensor, turn: Tensor) -> Tensor:
    """Return the value of each row at its last turn, zero at the others, shape ``(B, K)``.

    Args:
        values: Value of each row, shape ``(B,)``.
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.

    Example:
        >>> place_last(torch.tensor([5.0, 7.0]), torch.tensor([[0, -1, 1], [0, 0, -1]])).tolist()
        [[0.0, 5.0], [7.0, 0.0]]

    """
    last_turns = (count_turns(turn) - 1).clamp(min=0)
    turns = values.new_zeros(len(values), int(last_turns.max()) + 1 if len(last_turns) else 1)
    return turns.scatter(1, last_turns[:, None], values[:, None])
