"""Five numbers about a prefix that a hidden state may not show: how surprising it was, and how long."""

import torch
from torch import Tensor

from rlcredit.formulas.gaps import close_gaps, number_places, open_gaps
from rlcredit.formulas.running_sums import running_sums

SURPRISE_NATS = 1.0
"""Surprisal in nats beyond which a token counts as a surprise."""

LENGTH_UNIT = 50.0
"""Tokens that count as one in the length of a prefix."""


def prefix_statistics(surprisals: Tensor, mask: Tensor) -> Tensor:
    """Return last, summed and largest surprisal, number of surprises and length of the prefix before each token.

    Args:
        surprisals: Surprisal of each sampled token in nats, shape ``(B, T)``.
        mask: True on sampled tokens, the only ones that count, shape ``(B, T)``.

    Returns:
        Shape ``(B, T, 5)`` float32; zeros before the first token; lengths in units of :data:`LENGTH_UNIT` tokens.

    Example:
        >>> prefix_statistics(torch.tensor([[0.5, 2.0, 9.0, 0.0]]), torch.tensor([[True, True, False, True]]))[0, 3]
        tensor([2.0000, 2.5000, 2.0000, 1.0000, 0.0400])

    """
    places = number_places(mask)
    surprisals = close_gaps(surprisals, places)
    history = torch.cat([torch.zeros_like(surprisals[:, :1]), surprisals[:, :-1]], 1).float()
    length = torch.arange(history.shape[1], device=history.device).expand(history.shape) / LENGTH_UNIT
    surprises = (history > SURPRISE_NATS).cumsum(1).float()
    statistics = (history, running_sums(history), history.cummax(1).values, surprises, length)
    return torch.stack([open_gaps(values, places) for values in statistics], -1)


def extended_statistics(statistics: Tensor, surprisals: Tensor) -> Tensor:
    """Return the statistics of prefixes with one more token.

    Args:
        statistics: Statistics of the prefixes, shape ``(N, 5)``.
        surprisals: Surprisal of the next token of each, shape ``(N,)``.

    Example:
        >>> statistics = prefix_statistics(torch.tensor([[0.5, 2.0, 0.0]]), torch.ones(1, 3, dtype=torch.bool))[0]
        >>> torch.equal(extended_statistics(statistics[:2], torch.tensor([0.5, 2.0])), statistics[1:])
        True

    """
    _, total, largest, surprises, length = statistics.unbind(-1)
    return torch.stack(
        [
            surprisals,
            total + surprisals,
            torch.maximum(largest, surprisals),
            surprises + (surprisals > SURPRISE_NATS).float(),
            length + 1 / LENGTH_UNIT,
        ],
        -1,
    )
