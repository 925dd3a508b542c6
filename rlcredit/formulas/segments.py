"""Where a completion can be cut: at every token, between sentences, or at the edges of planning phrases."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, get_args

import torch
from torch import Tensor

from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.formulas.spans import list_turn_columns
from rlcredit.formulas.turns import find_turn_starts

Cuts = Literal["token", "sentence", "phrase", "turn"]
"""What a segment is: one token; a sentence; a planning phrase, or what stands between two of them."""

BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+|\s*\n\s*")
"""A point without a space after it, as in a number, does not end a sentence."""


def sentence_starts(tokens: Sequence[str]) -> list[int]:
    r"""Return the tokens that hold the first character of a sentence.

    Args:
        tokens: Decoded pieces; joined, they are the text.

    Example:
        >>> sentence_starts(["So", " 1.5", ". ", "Wait", "\n", "no", "!"])
        [0, 3, 5]

    """
    text, ends = "".join(tokens), list(accumulate(map(len, tokens)))
    starts = [match.end() for match in BETWEEN_SENTENCES.finditer(text) if match.end() < len(text)]
    return sorted({0, *(bisect_right(ends, start) for start in starts)})


def segment_starts(tokens: Sequence[Sequence[str]], plan_mask: Tensor, turn: Tensor, cuts: Cuts) -> Tensor:
    """Mark the first token of every segment; none goes beyond the end of a turn.

    Args:
        tokens: Decoded pieces of each completion; used by sentences only.
        plan_mask: True on planning tokens, shape ``(B, T)``; used by phrases only.
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.
        cuts: Kind of segment.

    Returns:
        Boolean, shape ``(B, T)``; true on the first token of every turn, false outside of turns.

    """
    if require_choice("segment_starts", "cuts", cuts, get_args(Cuts)) == "token":
        return turn >= 0
    starts = find_turn_starts(turn)
    if cuts == "sentence":
        for row, columns in list_turn_columns(turn):
            starts[row, columns][sentence_starts(tokens[row][columns])] = True
    elif cuts == "phrase":
        starts[:, 1:] |= plan_mask[:, 1:] != plan_mask[:, :-1]
    return starts & (turn >= 0)


def segment_differences(values: Tensor, starts: Tensor, mask: Tensor) -> Tensor:
    r"""Give every token the value of its segment, :math:`V_{end} - V_{start}`.

    Args:
        values: Values of prefixes, shape ``(B, T + 1)``: at t that of the first t tokens, and from the end of a
            completion on that of the whole; only those before a segment matter otherwise.
        starts: True on the first token of every segment, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    Returns:
        Shape ``(B, T)``, zero outside the mask.

    Example:
        >>> values = torch.tensor([[0.25, torch.nan, 0.75, 1.0]])
        >>> starts, mask = torch.tensor([[True, False, True]]), torch.ones(1, 3, dtype=torch.bool)
        >>> segment_differences(values, starts, mask)
        tensor([[0.5000, 0.5000, 0.2500]])

    """
    width = mask.shape[1]
    place = torch.arange(width, device=mask.device).expand_as(mask)
    begin = place.where(starts, 0).cummax(-1).values
    next_starts = torch.cat([place.where(starts, width), torch.full_like(place[:, :1], width)], -1)
    end = next_starts.flip(-1).cummin(-1).values.flip(-1)[:, 1:]
    return (values.gather(-1, end) - values.gather(-1, begin)).where(mask, 0)
