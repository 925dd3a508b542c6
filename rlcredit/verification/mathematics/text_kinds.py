"""Kinds that are compared as they are written: texts by words, letters, dates, scores and digits by characters."""

import re

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.named_values import drop_leading_name
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


_LETTER = re.compile(r"(?:\(\s*)?(?:\\text\{)?\s*\(?\s*([A-J])\s*\)?\s*\}?\s*\)?")
_CHOICE = re.compile(
    r"(?i:(?:option|choice|answer)\s+)?(?:\\text\{\s*)?(?i:(?:option|choice|answer)\s+)?"
    r"(?P<open>\()?\s*(?:\\text\{)?(?P<letter>[A-Za-z])\}?\s*(?P<close>\))?\s*(?P<mark>[.:)])?\}?(?P<rest>.*)",
    re.DOTALL,
)
_OTHER_CHOICE = re.compile(
    r"(?<![A-Z])[B-J](?![A-Za-z])|(?<![A-Za-z\\])A(?! ?[a-z])(?![A-Za-z])|^\W*[a-j]\W*$|^\W*[a-j]\s*[).]"
)
_DENIAL = re.compile(
    r"(?<![A-Za-z])(?:not|no|or|nor|wrong|incorrect|false|isn|either|neither|maybe)(?![A-Za-z])", re.IGNORECASE
)


def is_option_letter(reference: str) -> bool:
    """Whether a reference is one of the letters that multiple choice has: ``C``, ``(C)``."""
    return _LETTER.fullmatch(reference) is not None


def is_same_option_letter(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer chooses this letter and no other: ``C.``, ``(C) 5``, but not ``A or C``."""
    expected = _LETTER.fullmatch(reference)
    answer = re.sub(r"^\\text\{\s*((?i:option|choice|answer))\s*\}", r"\1 ", answer.strip())
    chosen = _CHOICE.fullmatch(re.sub(r"^\[\s*([A-Z])\s*\]$", r"\1", answer))
    if expected is None or chosen is None or chosen["letter"].upper() != expected[1]:
        return False
    if chosen["open"] and not chosen["close"]:
        return False
    rest = re.sub(r"[{}]", " ", chosen["rest"]).strip()
    if not rest or re.fullmatch(r"[).\s]*", rest):
        return True
    return bool(chosen["mark"] or chosen["close"]) and not _OTHER_CHOICE.search(rest) and not _DENIAL.search(rest)


_UNCOMPUTED = re.compile(r"\d+(?:\s*[-/.]\s*\d+){2,}|\d+(?:\s*:\s*\d+)+(?:\s*[AaPp]\.?[Mm]\.?)?|\d+\s*-\s*\d+")


def is_date_or_score(reference: str) -> bool:
    """Whether a reference looks like arithmetic and is none: ``2023-01-15``, ``7:30``, ``3-2``."""
    return _UNCOMPUTED.fullmatch(read_words(reference)) is not None


def has_same_characters(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same characters, blanks and case aside."""
    ours, theirs = (re.sub(r"\s", "", read_words(drop_leading_name(text))).casefold() for text in (answer, reference))
    return ours == theirs
