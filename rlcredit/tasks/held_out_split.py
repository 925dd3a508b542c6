"""Which questions are held out: a property of the text alone."""

import math
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Sequence

from rlcredit.tasks.example import Example, QuestionSets


def is_held_out(question: str, share: float = 0.1) -> bool:
    """Decide by a hash of the text whether a question is held out, whatever the seed, size or order.

    Because nothing but the text decides, no training set, of whatever seed, can contain a held-out question.

    Example:
        >>> is_held_out("4 - 1 ="), is_held_out("any", share=1.0), is_held_out("any", share=0.0)
        (False, True, False)

    """
    return _hash_question(question) < share * 2**32


def _hash_question(question: str) -> int:
    return zlib.crc32(question.encode())


_WORDS = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d]+|[^\w\s]")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_DASHES = re.compile("[\u2010-\u2015\u2212\u2043]")
_QUOTES = re.compile("[\u2018\u2019\u02bc\u2032`]")
_RAISED = re.compile("[\u00b2\u00b3\u00b9\u2070-\u207f]+")
_AROUND = re.compile(r"(?<!\w)'([^'\n]*)'(?!\w)|(?<=[^\W\d]{2})!+(?=\s|$)")
"""Quotation marks around words, and exclamation marks behind them: neither derivatives nor factorials."""
_SENTENCE_MARKS = frozenset('.,;:?$"\u00ab\u00bb\u201c\u201d\u201e')


def normalise_wording(text: str) -> str:
    """Return the key that questions share if they differ only in notation.

    Spaces, case, the marks of sentences and the form of characters in Unicode do not count. Numbers, operators, and
    what else changes the meaning of mathematics does.

    Example:
        >>> normalise_wording("What is  4-1 ?") == normalise_wording("what is 4 \u2212 1")
        True
        >>> normalise_wording("5! = ") == normalise_wording("5 =")
        False

    """
    wording = _RAISED.sub(lambda power: f"^{power[0]}", _INVISIBLE.sub("", text))  # or 5 squared would become 52
    wording = _QUOTES.sub("'", _DASHES.sub("-", unicodedata.normalize("NFKC", wording))).casefold()
    return " ".join(word for word in _WORDS.findall(_AROUND.sub(r"\1", wording)) if word not in _SENTENCE_MARKS)


def separate_alike_questions(train: Sequence[Example], held_out: Sequence[Example]) -> QuestionSets:
    """Return the training questions unlike all held-out ones, and those that are worded like one."""
    wordings = {normalise_wording(example.text) for example in held_out}
    return _split_examples(train, lambda example: normalise_wording(example.text) in wordings)


def _split_examples(examples: Iterable[Example], is_second: Callable[[Example], bool]) -> QuestionSets:
    parts: QuestionSets = ([], [])
    for example in examples:
        parts[is_second(example)].append(example)
    return parts


def hold_out_smallest_hashes(examples: Sequence[Example]) -> QuestionSets:
    """Hold out the tenth with the smallest hashes, at least one question: for sets too small for chance.

    Unlike :func:`is_held_out` it depends on the other questions, too.

    Returns:
        Those for training, and those held out, each in the order given.

    """
    number = max(1, round(0.1 * len(examples)))
    held_out_ids = {
        id(example) for example in sorted(examples, key=lambda example: _hash_question(example.text))[:number]
    }
    return _split_examples(examples, lambda example: id(example) in held_out_ids)


def split_held_out(
    examples: Iterable[Example], train_size: int | None, validation_size: int | None, share: float = 0.1
) -> QuestionSets:
    """Deal distinct questions to a training and a held-out set until both are full or the examples end.

    Args:
        examples: Examples in a fixed order; repeated questions are dropped.
        train_size: Number of training questions wanted, or None for all.
        validation_size: Number of held-out questions wanted, or None for all.
        share: Share of all questions that is held out.

    """
    sizes = [math.inf if size is None else size for size in (train_size, validation_size)]
    parts: QuestionSets = ([], [])
    texts: set[str] = set()
    for example in examples:
        if example.text in texts:
            continue
        texts.add(example.text)
        index = int(is_held_out(example.text, share))
        if len(parts[index]) < sizes[index]:
            parts[index].append(example)
        if all(len(part) >= size for part, size in zip(parts, sizes, strict=True)):
            break
    return parts


def make_disjoint_sets(
    train: Iterable[Example], held_out: Iterable[Example], validation_size: int | None
) -> QuestionSets:
    """Remove every held-out question from the training set, then cut the held-out set to size.

    Args:
        train: Training questions; repeated ones are dropped.
        held_out: Held-out questions; repeated ones are dropped.
        validation_size: Number of held-out questions wanted, or None for all.

    """
    _, validation = split_held_out(held_out, None, None, share=1.0)
    forbidden = {example.text for example in validation}
    training, _ = split_held_out((example for example in train if example.text not in forbidden), None, None, share=0.0)
    return training, validation[:validation_size]
