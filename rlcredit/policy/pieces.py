"""The text of every token of a completion."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

_SPLIT_MARK = "\ufffd"
"""Text of bytes that are no whole character."""


class _WholeTexts(dict[int, str | None]):
    """Texts of tokens by themselves, empty if special or unknown; None for a token that holds a part of a character.

    A token is decoded when it is looked up first.
    """

    def __init__(self, backend: Any) -> None:
        super().__init__()
        self.backend = backend

    def __missing__(self, token: int) -> str | None:
        text = self.backend.decode([token])
        self[token] = None if _SPLIT_MARK in text else text
        return self[token]


def make_piece_decoder(tokenizer: Any) -> Callable[[Sequence[int]], list[str]]:
    """Return a function from the token ids of a completion to the text of each token.

    A character split over tokens appears whole at the last of them. Joined, the texts are the completion's without
    special tokens. A byte-level tokenizer writes the bytes of tokens one behind the other, so that a token of whole
    characters has the same text everywhere and is looked up.

    Args:
        tokenizer: Fast tokenizer of transformers.

    """
    from tokenizers import decoders  # noqa: PLC0415  (credit without texts needs no tokenizer)

    backend = tokenizer.backend_tokenizer
    whole_texts = _WholeTexts(backend) if isinstance(backend.decoder, decoders.ByteLevel) else None

    def decode_pieces(ids: Sequence[int]) -> list[str]:
        texts = [None] * len(ids) if whole_texts is None else [whole_texts[token] for token in ids]
        return _read_split_characters(backend, ids, texts)

    return decode_pieces


def decode_runs(
    decode: Callable[[Sequence[int]], list[str]], ids: Sequence[int], is_sampled: Sequence[bool]
) -> list[str]:
    """Return the text of each token by a function of :func:`make_piece_decoder`; turns and gaps are decoded apart."""
    pieces, start = [], 0
    for _, run in itertools.groupby(is_sampled):
        end = start + len(list(run))
        pieces += decode(ids[start:end])
        start = end
    return pieces


def _read_split_characters(backend: Any, ids: Sequence[int], texts: Sequence[str | None]) -> list[str]:
    """Return the text of each token, read in turn from one that is not whole to the next one that is.

    Args:
        backend: Tokenizer of the library tokenizers.
        ids: Token ids of a completion.
        texts: Text of each token, empty if it has none; None where it depends on the tokens before.

    """
    from tokenizers.decoders import DecodeStream  # noqa: PLC0415

    if None not in texts:
        return list(texts)  # pyright: ignore[reportReturnType]
    stream, pieces = None, []
    for token, text in zip(ids, texts, strict=True):
        if text is None and stream is None:
            stream = DecodeStream(skip_special_tokens=True)
        pieces.append(text if stream is None else stream.step(backend, token) or "")
        if text:
            stream = None
    return pieces
