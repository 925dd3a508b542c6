"""The text of every token of a completion."""

from collections.abc import Callable, Sequence
from typing import Any


def make_piece_decoder(tokenizer: Any) -> Callable[[Sequence[int]], list[str]]:
    """Return a function from the token ids of a completion to the text of each token.

    A character split over tokens appears whole at the last of them. Joined, the texts are the completion's without
    special tokens.

    Args:
        tokenizer: Fast tokenizer of transformers.

    """
    from tokenizers.decoders import DecodeStream  # noqa: PLC0415  (credit without texts needs no tokenizer)

    backend = tokenizer.backend_tokenizer

    def decode_pieces(ids: Sequence[int]) -> list[str]:
        stream = DecodeStream(skip_special_tokens=True)
        return [stream.step(backend, token) or "" for token in ids]

    return decode_pieces
