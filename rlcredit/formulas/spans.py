"""From phrases in a text to the tokens that spell them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

import torch
from torch import Tensor

from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.turns import find_turn_ends, find_turn_starts

Span = tuple[int, int]
"""First character and the one after the last."""

APOSTROPHE_PATTERN = "['\u2019\u2018\u02bc`]"
BETWEEN_WORDS = r"(?:[\s,*\-\u2010-\u2015\u2026]|\.{2,}+)++"
"""White space, commas, hyphens, emphasis and dots of hesitation may stand between the words of a phrase.

Possessive quantifiers: separators never backtrack, however many dots a completion ends in.
"""


@lru_cache(maxsize=64)
def _compile_phrase_pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Build a pattern that matches the longest phrase beginning at a word, without consuming it."""
    longest_first = sorted(phrases, key=lambda phrase: -len(phrase))
    words = [[re.escape(word).replace("'", APOSTROPHE_PATTERN) for word in phrase.split()] for phrase in longest_first]
    return re.compile(rf"(?<!\w)(?=({'|'.join(map(BETWEEN_WORDS.join, words))})(?!\w))", re.IGNORECASE)


def phrase_spans(text: str, phrases: Iterable[str]) -> list[Span]:
    r"""Find phrases as whole words, in any case, whatever separates them.

    Straight and curly apostrophes are one; commas, hyphens, dots and line breaks may stand where a phrase has a space.

    Args:
        text: Text of a completion.
        phrases: Phrases, each words separated by spaces, apostrophes straight.

    Returns:
        Spans in order; those that overlap are joined.

    Example:
        >>> phrase_spans("Wait, let me\nthink. That\u2019s it.", ["wait let me", "let me think", "that's it"])
        [(0, 18), (20, 29)]

    """
    spans: list[Span] = []
    for match in _compile_phrase_pattern(phrases).finditer(text) if (phrases := tuple(phrases)) else ():
        start, end = match.span(1)
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def mask_from_spans(tokens: Sequence[str], spans: Iterable[Span]) -> Tensor:
    """Mark the tokens of which a character lies inside a span.

    A token without text, such as the first bytes of a curly apostrophe, is marked between two characters of a span, but
    not before or after it.

    Args:
        tokens: Decoded pieces; joined, they are the text.
        spans: Spans of the text; they may overlap.

    Returns:
        Boolean, shape ``(len(tokens),)``.

    Example:
        >>> mask_from_spans(["So", " no", "tice", " that", " 4"], [(3, 14)])
        tensor([False,  True,  True,  True, False])

    """
    ends = list(accumulate(map(len, tokens)))
    starts = [0, *ends[:-1]]
    span_mask = torch.zeros(len(tokens), dtype=torch.bool, device="cpu")
    for start, end in spans:
        span_mask[bisect_right(ends, start) : bisect_left(starts, end)] = True
    return span_mask


def list_turn_columns(turn: Tensor) -> list[tuple[int, slice]]:
    """Return row and columns of every turn, row by row; ``turn`` as for :func:`plan_mask_from_spans`.

    Example:
        >>> list_turn_columns(torch.tensor([[0, 0, -1, 1]]))
        [(0, slice(0, 2, None)), (0, slice(3, 4, None))]

    """
    starts, ends = (find(turn).nonzero().tolist() for find in (find_turn_starts, find_turn_ends))
    return [(row, slice(start, end + 1)) for (row, start), (_, end) in zip(starts, ends, strict=True)]


def turn_texts(rows: Sequence[Sequence[str]], turn: Tensor) -> list[str]:
    """Return the text of every turn, row by row; shapes as in :func:`plan_mask_from_spans`."""
    return ["".join(rows[row][columns]) for row, columns in list_turn_columns(turn)]


def plan_mask_from_spans(rows: Sequence[Sequence[str]], spans: Iterable[Iterable[Span]], turn: Tensor) -> Tensor:
    """Apply :func:`mask_from_spans` to the turns of a batch.

    Args:
        rows: Decoded pieces of each completion.
        spans: Spans of the text of each turn, row by row.
        turn: Number of the turn of each sampled token, -1 elsewhere, shape ``(B, T)``.

    Returns:
        Boolean, shape ``(B, T)``, on the device of ``turn``; false outside of turns.

    """
    plan_mask = torch.zeros(turn.shape, dtype=torch.bool, device="cpu")
    for (row, columns), turn_spans in zip(list_turn_columns(turn), spans, strict=True):
        pieces = rows[row][columns]
        plan_mask[row, columns.start : columns.start + len(pieces)] = mask_from_spans(pieces, turn_spans)
    return plan_mask.to(turn.device)


def phrase_plan_mask(rows: Sequence[Sequence[str]], phrases: Iterable[str], turn: Tensor) -> Tensor:
    """Mark the tokens that spell one of some phrases within a turn; shapes as in :func:`plan_mask_from_spans`."""
    phrases = tuple(phrases)
    return plan_mask_from_spans(rows, [phrase_spans(text, phrases) for text in turn_texts(rows, turn)], turn)


def plan_coverage(plan_mask: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Return the share of tokens that are planning, and the share of completions that hold any.

    Args:
        plan_mask: True on planning tokens, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    """
    return {
        "coverage": masked_mean(plan_mask.float(), mask),
        "planning_completions": (plan_mask & mask).any(-1).float().mean(),
    }
