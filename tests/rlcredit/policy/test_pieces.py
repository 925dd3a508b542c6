"""Every token has the text that a stream would give it, looked up or not."""

import random

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.decoders import DecodeStream

from rlcredit.policy import pieces
from rlcredit.policy.model_loading import load_tokenizer
from rlcredit.policy.pieces import make_piece_decoder
from rlcredit.policy.policy import Policy

TEXT = "So 12 + 35 = 47. Größe, naïve, 東京, 🙂👩‍🚀, \ufffd, \t\n the answer is 47.<|im_end|>"


class Fast:
    """A tokenizer of the library tokenizers, as transformers holds it."""

    def __init__(self, backend):
        self.backend_tokenizer = backend


def make_embedded():
    return load_tokenizer(Policy().location)


def make_byte_level():
    """All bytes, some of them joined within and across characters, and tokens that were added."""
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    joined = [pre_tokenizers.ByteLevel(False, use_regex=False).pre_tokenize_str(text)[0][0] for text in ("東京", "ß🙂")]
    symbols += [joined[0][:2], joined[0][2:4], joined[0], joined[1][1:4]]
    backend = Tokenizer(models.WordLevel({symbol: number for number, symbol in enumerate(symbols)}, "?"))
    backend.decoder = decoders.ByteLevel()
    backend.add_tokens([AddedToken("<think>"), AddedToken("a ß"), AddedToken("")])
    backend.add_special_tokens([AddedToken("<end>")])
    return Fast(backend)


def make_sentencepiece_like():
    """As Llama 2: marks instead of spaces, bytes in brackets, and no space at the beginning."""
    words = ["▁the", "▁answer", "▁", "▁is", "4", *(f"<0x{byte:02X}>" for byte in range(256)), "<s>"]
    backend = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, [], byte_fallback=True))
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.add_special_tokens([AddedToken("<s>")])
    return Fast(backend)


def make_wordpiece():
    words = ["the", "answer", "##s", ".", "is", "[CLS]"]
    backend = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[CLS]"))
    backend.decoder = decoders.WordPiece()
    backend.add_special_tokens([AddedToken("[CLS]")])
    return Fast(backend)


MAKERS = [make_embedded, make_byte_level, make_sentencepiece_like, make_wordpiece]


def list_parts(tokenizer):
    """Return runs of tokens that may follow one another: single ones, but bytes in brackets as whole characters.

    At bytes in brackets that are no character the stream raises.
    """
    vocabulary = tokenizer.backend_tokenizer.get_vocab()
    parts = [[number] for token, number in vocabulary.items() if not token.startswith("<0x")]
    if "<0x00>" in vocabulary:
        parts += [[vocabulary[f"<0x{byte:02X}>"] for byte in letter.encode()] for letter in "aß東🙂"]
    return [*parts, [len(vocabulary)], [len(vocabulary) + 3]]


def read_as_stream(tokenizer, ids):
    stream = DecodeStream(skip_special_tokens=True)
    return [stream.step(tokenizer.backend_tokenizer, token) or "" for token in ids]


@pytest.mark.parametrize("make", MAKERS)
def test_pieces_are_those_of_a_stream(make):
    """Random tokens, among them special and unknown ones, from short to long, alone and beside each other."""
    tokenizer, noise = make(), random.Random(0)
    parts, decode = list_parts(tokenizer), make_piece_decoder(tokenizer)
    for length in [*range(12)] * 40 + [300] * 8:
        ids = [token for part in noise.choices(parts, k=length) for token in part]
        assert decode(ids) == read_as_stream(tokenizer, ids)


def test_pieces_of_a_text_are_its_characters():
    tokenizer = make_embedded()
    ids = tokenizer.backend_tokenizer.encode(TEXT).ids
    decoded = make_piece_decoder(tokenizer)(ids)
    assert decoded == read_as_stream(tokenizer, ids)
    assert "".join(decoded) == TEXT.removesuffix("<|im_end|>")
    assert decoded[ids.index(tokenizer.eos_token_id)] == ""
    assert "東" in decoded
    assert "🙂" in decoded


@pytest.mark.parametrize(("make", "looked_up"), [*zip(MAKERS, (True, True, False, False))])
def test_only_byte_level_tokens_are_looked_up(make, looked_up, monkeypatch):
    """The space before "the" is written where it does not come first: its text alone says nothing."""
    calls = []
    monkeypatch.setattr(pieces._WholeTexts, "__missing__", lambda table, token: calls.append(token))
    make_piece_decoder(make())([0, 1, 0])
    assert bool(calls) is looked_up
