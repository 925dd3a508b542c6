"""Letters of multiple choice, with or without the text of the option."""

import re

from rlcredit.verification.mathematics.equality import AnswerEquality

_LETTER = re.compile(r"(?:\(\s*)?(?:\\text\{)?\s*\(?\s*([A-J])\s*\)?\s*\}?\s*\)?")
_KEYWORD = r"(?:(?i:options?|choices?|answers?)\s+)"
_CHOICE = re.compile(
    rf"(?P<keyword>{_KEYWORD})?(?P<open>[(\[])?\s*(?P<letter>[A-Za-z])\s*(?P<close>[)\]])?"
    r"\s*(?P<mark>[.:)]|-(?=\s))?(?P<rest>(?![A-Za-z'_^]).*)",
    re.DOTALL,
)
_LETTERS_ONLY = re.compile(
    r"(?:[\s,;:/|&.?!()\[\]+-]|\\[a-z]+"
    r"|(?<![A-Za-z])(?:[A-J]|and|or|nor|then|option|choice|resp|vs|cf|viz)(?![A-Za-z]))*",
    re.IGNORECASE,
)
_MARKED_LETTER = re.compile(
    r"(?<![\w\])])[(\[]\s*([A-J])\s*[)\]]|(?:^|(?<=[\s,;/|]))([A-J])\s*[.:)](?=\s+\S|\d)"
    rf"|(?<!\w){_KEYWORD}\(?([A-J])(?!\w)"
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
    expected_letter = _LETTER.fullmatch(reference)
    choice = _CHOICE.fullmatch(_drop_text_marks(answer))
    if expected_letter is None or choice is None or choice["letter"].upper() != expected_letter[1]:
        return False
    tail = choice["rest"] if choice["letter"].isupper() else choice["rest"].swapcase()
    if bool(choice["open"]) > bool(choice["close"]) or _chooses_otherwise(tail, expected_letter[1]):
        return False
    verdict = _VERDICT.match(tail)
    if verdict and _is_rejected(verdict):
        return False
    is_marked = choice["keyword"] or choice["close"] or choice["mark"]
    return bool(is_marked or verdict or _REASON.match(tail) or not re.search(r"\w", tail))


def _drop_text_marks(text: str) -> str:
    return " ".join(re.sub(r"\\text(?=\{)|\\quad|[{}]", " ", text).split())


def _chooses_otherwise(tail: str, letter: str) -> bool:
    """Whether what follows a chosen letter hedges, or marks another letter."""
    if _LETTERS_ONLY.fullmatch(tail):
        return bool(set(re.findall(r"(?<![A-Za-z])[A-Ja-j](?![A-Za-z])", tail)) - {letter})
    marks = _MARKED_LETTER.findall(_NO_CHOICE.sub("", tail))
    return _HEDGE.match(tail) is not None or not {"".join(letters) for letters in marks} <= {letter}


def _is_rejected(verdict: re.Match[str]) -> bool:
    """Whether ``is wrong`` or ``is not right`` is said of a letter."""
    is_denied = re.search(r"n't|\bnot\b", verdict[0], re.IGNORECASE) is not None
    return is_denied != (verdict["word"].lower() in ("wrong", "incorrect", "false"))


_SEPARATE_LETTERS = re.compile(r"(?:[\s,;&()\[\].]|\b(?:and|both|only|options?|choices?|answers?)\b)+", re.IGNORECASE)


def is_set_of_letters(reference: str) -> bool:
    """Whether a reference is several letters of multiple choice in their order: ``ACD``, ``A, C``."""
    letters = _read_letters(reference)
    is_ordered = letters.isupper() and letters == "".join(sorted(set(letters)))
    return len(letters) > 1 and is_ordered and not re.search(r"\([^()]*,", reference)


def is_same_set_of_letters(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer chooses the same letters, in whatever order."""
    return "".join(sorted(_read_letters(answer).upper())) == _read_letters(reference)


def _read_letters(text: str) -> str:
    """Return the letters that a text consists of, if it has nothing else; otherwise no letter."""
    letters = _SEPARATE_LETTERS.sub("", _drop_text_marks(text))
    return letters if re.fullmatch(r"[A-J]+|[a-j]+", letters) else ""
