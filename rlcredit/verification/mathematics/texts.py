r"""Texts."""

import re

from rlcredit.verification.mathematics.comparison import AnswerEquality
from rlcredit.verification.mathematics.units import read_quantity

_RUN = re.compile(r"(?<![A-Za-z\\])[^\W\d_]{2,}(?![A-Za-z])")
_PRODUCT_ALPHABETS = ("abcd", "xyz", "mnk", "pqrst", "uvw", "ij", "rh")


def read_words(text: str) -> str:
    """Return the words of a text in normal form."""
    text = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text)
    return " ".join(re.sub(r"[{}\"]", " ", text).strip(" .'").split())


def is_text_reference(reference: str) -> bool:
    """Whether a reference is made of words, and no quantity."""
    if re.search(r"\d|[=+^*/<>]|\\(?!text)", reference) and not re.search(r"\\text\{[^{}]*[A-Za-z]{3}", reference):
        return False
    if re.search(r"\d", read_quantity(reference).value) and read_quantity(reference).value != reference:
        return False
    runs = _RUN.findall(read_words(reference))
    return any(not any(set(run) <= set(letters) for letters in _PRODUCT_ALPHABETS) for run in runs)


def is_same_text(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same words, case and articles aside."""
    ours, theirs = map(_normalise_words, (answer, reference))
    return bool(ours) and ours == theirs


def _normalise_words(text: str) -> str:
    """Return the words of a text without case, article, hyphens between words and full stops of abbreviations."""
    words = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])", " ", read_words(text).casefold())
    return re.sub(r"^(?:the|a|an) ", "", re.sub(r"(?<=[^\W\d_])\.(?= [^\W\d_])", "", words))
