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
_KEYWORD = r"(?:(?i:options?|choices?|answers?)\s+)"
_CHOICE = re.compile(
    rf"(?P<keyword>{_KEYWORD})?(?P<open>[(\[])?\s*(?P<letter>[A-Za-z])\s*(?P<close>[)\]])?"
    r"\s*(?P<mark>[.:)]|-(?=\s))?(?P<rest>(?![A-Za-z'_^]).*)",
    re.DOTALL,
)
_LETTERS_ONLY = re.compile(
    r"(?:[\s,;:/|&.?!()\[\]+-]|(?<![A-Za-z])(?:[A-J]|and|or|nor|then|option|choice)(?![A-Za-z]))*", re.IGNORECASE
)
_MARKED_LETTER = re.compile(
    rf"(?<![\w\])])[(\[]\s*([A-J])\s*[)\]]|(?:^|(?<=[\s,;/|]))([A-J])\s*[.:)](?=\s+\S|\d)|(?<!\w){_KEYWORD}\(?([A-J])(?!\w)"
)
_NO_CHOICE = re.compile(
    r"\w\([^()]*\)|\b(?i:not|rather than|instead of|unlike)\s+\(\s*[A-J]\s*\)(?:,?\s+n?or\s+\(\s*[A-J]\s*\))*"
)
"""Marked letters that choose nothing: the argument of a function, and what is rejected."""

_HEDGE = re.compile(r"\W*(?:[Oo]r|[Nn]or|[Mm]aybe|[Pp]erhaps|[Pp]ossibly|but|and)\b")
_VERDICT = re.compile(
    r"\W*(?:is|was|seems|looks)(?:\s+|n't\s+)(?:(?:not|the|a|definitely|clearly|most likely)\s+){0,3}"
    r"(?P<word>wrong|incorrect|false|right|correct|true|best|answer|option|choice|it)\b",
    re.IGNORECASE,
)
_REASON = re.compile(r"\W*(?:because|since|as|which|for|i\.e\.)\s", re.IGNORECASE)


def is_option_letter(reference: str) -> bool:
    """Whether a reference is one of the letters that multiple choice has: ``C``, ``(C)``."""
    return _LETTER.fullmatch(reference) is not None


def is_same_option_letter(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer chooses this letter and no other: ``C.``, ``(C) Group B``, ``(C), not (D)``; no ``A or C``.

    Behind a marked letter stands the text of the option, which may have letters and denials of its own: only a second
    *marked* letter is another choice.
    """
    expected = _LETTER.fullmatch(reference)
    chosen = _CHOICE.fullmatch(_drop_text_marks(answer))
    if expected is None or chosen is None or chosen["letter"].upper() != expected[1]:
        return False
    rest = chosen["rest"] if chosen["letter"].isupper() else chosen["rest"].swapcase()
    if bool(chosen["open"]) > bool(chosen["close"]) or _chooses_otherwise(rest, expected[1]):
        return False
    verdict = _VERDICT.match(rest)
    if verdict and _is_rejected(verdict):
        return False
    marked = chosen["keyword"] or chosen["close"] or chosen["mark"]
    return bool(marked or verdict or _REASON.match(rest) or not re.search(r"\w", rest))


def _drop_text_marks(text: str) -> str:
    return " ".join(re.sub(r"\\text(?=\{)|\\quad|[{}]", " ", text).split())


def _chooses_otherwise(rest: str, letter: str) -> bool:
    """Whether what follows a chosen letter hedges, or marks another letter."""
    if _LETTERS_ONLY.fullmatch(rest):
        return bool(set(re.findall(r"(?<![A-Za-z])[A-Ja-j](?![A-Za-z])", rest)) - {letter})
    marked = _MARKED_LETTER.findall(_NO_CHOICE.sub("", rest))
    return _HEDGE.match(rest) is not None or not {"".join(letters) for letters in marked} <= {letter}


def _is_rejected(verdict: re.Match[str]) -> bool:
    """Whether ``is wrong`` or ``is not right`` is said of a letter."""
    denied = re.search(r"n't|\bnot\b", verdict[0], re.IGNORECASE) is not None
    return denied != (verdict["word"].lower() in ("wrong", "incorrect", "false"))


_SEPARATE_LETTERS = re.compile(r"(?:[\s,;&()\[\].]|and|both|only|options?|choices?|answers?)+", re.IGNORECASE)


def is_set_of_letters(reference: str) -> bool:
    """Whether a reference is several letters of multiple choice in their order: ``ACD``, ``A, C``."""
    letters = _read_letters(reference)
    return len(letters) > 1 and letters == "".join(sorted(set(letters))) and not re.search(r"\([^()]*,", reference)


def is_same_set_of_letters(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer chooses the same letters, in whatever order."""
    return "".join(sorted(_read_letters(answer).upper())) == _read_letters(reference)


def _read_letters(text: str) -> str:
    """Return the letters that a text consists of, if it has nothing else; otherwise no letter."""
    letters = _SEPARATE_LETTERS.sub("", _drop_text_marks(text))
    return letters if re.fullmatch(r"[A-J]+|[a-j]+", letters) else ""


_UNCOMPUTED = re.compile(r"\d+(?:\s*[-/.]\s*\d+){2,}|\d+(?:\s*:\s*\d+)+(?:\s*[AaPp]\.?[Mm]\.?)?|\d+\s*-\s*\d+")
_BASED = re.compile(r"\(?\s*([0-9][0-9A-F ]*(?:\.[0-9A-F]+)?)\s*\)?_\{(?:\\text\{)?\s*(\w+)\s*\}?\}")
_BASES = dict(
    zip(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
        map(str, range(2, 13)),
        strict=True,
    )
)


def is_date_or_score(reference: str) -> bool:
    """Whether a reference looks like arithmetic and is none: ``2023-01-15``, ``7:30``, ``3-2``."""
    return _UNCOMPUTED.fullmatch(read_words(reference)) is not None


def has_same_characters(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same characters, blanks and case aside."""
    ours, theirs = (re.sub(r"\s", "", read_words(drop_leading_name(text))).casefold() for text in (answer, reference))
    return ours == theirs


def is_based_number(reference: str) -> bool:
    """Whether a reference is a number with its base: ``1011_{2}``."""
    return _BASED.fullmatch(reference) is not None


def has_same_digits(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same digits and names the same base."""
    ours, theirs = _BASED.fullmatch(drop_leading_name(answer)), _BASED.fullmatch(reference)
    if ours is None or theirs is None:
        return False
    digits = [each[1].replace(" ", "").lstrip("0") for each in (ours, theirs)]
    bases = [_BASES.get(each[2].lower(), each[2]) for each in (ours, theirs)]
    return digits[0] == digits[1] and bases[0] == bases[1]
