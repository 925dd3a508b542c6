"""The number of completions that an update computes at a time: as set, or as memory allows."""

import itertools
from collections.abc import Callable, Sequence
from typing import Literal

import torch

Size = int | Literal["auto"] | None
"""Number of completions of the largest length; ``auto`` for as many as fit; None for the whole batch."""

SCORED_TOKENS = {"cpu": 960, "cuda": 16_384}
"""Tokens that are scored together where memory would allow more: a processor's caches hold no more of them, and an
accelerator is idle with fewer."""


def choose_scored_tokens(kind: str) -> int:
    """Return the number of tokens scored together on a kind of device, such as ``cuda``.

    Example:
        >>> choose_scored_tokens("cpu"), choose_scored_tokens("cuda")
        (960, 16384)

    """
    return SCORED_TOKENS.get(kind, SCORED_TOKENS["cpu"])


def split_rows_by_tokens(lengths: Sequence[int], tokens: int) -> list[slice]:
    """Cut rows of ascending length into runs that hold so many tokens at most, padding included, or one row.

    Example:
        >>> split_rows_by_tokens([1, 2, 2, 3, 9], tokens=6)
        [slice(0, 3, None), slice(3, 4, None), slice(4, 5, None)]

    """
    cut = [0]
    for row, length in enumerate(lengths):
        if row > cut[-1] and (row + 1 - cut[-1]) * length > tokens:
            cut.append(row)
    return [slice(*ends) for ends in itertools.pairwise([*cut, len(lengths)])]


class MicroBatches:
    """Cuts batches into micro-batches of as many tokens each; how they are cut changes no gradient but by rounding.

    Args:
        size: Size of a micro-batch.

    Attributes:
        limit: Tokens of a micro-batch that fit, as far as is known; None as long as all have.

    """

    def __init__(self, size: Size) -> None:
        if isinstance(size, int) and size < 1:
            raise ValueError(f"model.micro_batch_size: expected a number from 1 on, or auto, got {size}.")
        self.size: Size = size
        self.limit: int | None = None
        self._tried = 0

    def __str__(self) -> str:
        """Return the setting as the end of a sentence."""
        if self.size is None:
            return ""
        return f", {'as many as fit' if self.size == 'auto' else f'{self.size} completions'} at a time"

    def split_batch(self, lengths: Sequence[int], compute: Callable[[slice], object]) -> list[slice]:
        """Return the micro-batches of a batch; a single one if it fits.

        Args:
            lengths: Tokens of each row, prompt included, ascending.
            compute: Forward and backward pass of some rows that leaves nothing behind; with ``auto`` it is called for
                the largest micro-batch whenever none so large has been computed before, and with less and less until
                memory suffices.

        Raises:
            torch.OutOfMemoryError: not even one row fits.

        """
        if self.size is None:
            return [slice(0, len(lengths))]
        if isinstance(self.size, int):
            return split_rows_by_tokens(lengths, self.size * lengths[-1])
        while True:
            cut = split_rows_by_tokens(lengths, self.limit or len(lengths) * lengths[-1])
            largest = max(cut, key=lambda part: _padded_tokens(lengths, part))
            tokens = _padded_tokens(lengths, largest)
            if tokens <= self._tried:
                return cut
            try:
                compute(largest)
            except torch.OutOfMemoryError:
                if largest.stop - largest.start == 1:
                    raise
                self.limit = tokens // 2
            else:
                self._tried = tokens
            if torch.cuda.is_available():
                torch.cuda.empty_cache()  # memory of the pass; an error keeps it until the except block ends


def _padded_tokens(lengths: Sequence[int], part: slice) -> int:
    return (part.stop - part.start) * lengths[part.stop - 1]
