"""Texts, compared by their words; answers that say there is none."""

import re

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.named_values import is_value_name
from rlcredit.verification.mathematics.units import read_quantity

_RUN = re.compile(r"(?<![A-Za-z\\])[^\W\d_]{2,}(?![A-Za-z])")
_PRODUCT_ALPHABETS = ("abcd", "xyz", "mnk", "pqrst", "uvw", "ij", "rh")


def read_words(text: str) -> str:
    """Return the words of a text in normal form."""
    text = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text)
    return " ".join(re.sub(r"[{}\"]", " ", text).strip(" .!'").split())


def is_text_reference(reference: str) -> bool:
    """Whether a reference is made of words, and no quantity."""
    if re.search(r"\d|[=+^*/<>]|\\(?!text)", reference) and not re.search(r"\\text\{[^{}]*[A-Za-z]{3}", reference):
        return False
    if re.search(r"\d", read_quantity(reference).value) and read_quantity(reference).value != reference:
        return False
    runs = _RUN.findall(read_words(reference))
    return any(not any(set(run) <= set(letters) for letters in _PRODUCT_ALPHABETS) for run in runs)


def is_same_text(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same words, case and articles aside; a reason may follow yes, no, true and false."""
    ours, theirs = map(_normalise_words, (answer, reference))
    return bool(ours) and (ours == theirs or _is_reasoned(ours, theirs))


_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_REASONED = re.compile(r"(\w+)\s*(?:[,.;:(-]|because\b|since\b|as\b)(.+)")
_DOUBT = re.compile(
    r"^\s*(?:if|when|only|in|for|except|with)\b|\b(?:or|but|maybe|perhaps|possibly|sometimes|unless|depends|unsure|unclear|unknown|however|although|either|neither"
    r"|both|guess|think|wait|actually|(?:not|never) (?:really|sure|always))\b"
)


def _is_reasoned(answer: str, word: str) -> bool:
    """Whether an answer says yes, no, true or false, and then why, without doubt and without the opposite."""
    match = _REASONED.fullmatch(answer)
    if word not in _OPPOSITES or match is None or match[1] != word:
        return False
    return not _DOUBT.search(match[2]) and not re.search(rf"\b{_OPPOSITES[word]}\b", match[2])


_NOUN = r"(?:solutions?|roots?)"
_ABSENCES = {
    "no limit": r"dne|(?:does ?n[o']t|do not|cannot) exist|non-?existent|no limit(?: exists)?",
    "undefined": r"undefined|not defined",
    "no solution": rf"no {_NOUN}(?: exists?)?|inconsistent|{_NOUN} (?:does|do) ?n[o']t exist",
    "no real solution": rf"no real {_NOUN}(?: exists?)?|no {_NOUN} (?:in|over) (?:the )?(?:reals|real numbers)",
    "none": r"none(?: exists?)?|nothing|no such \w+(?: exists?)?",
    "empty set": r"\\emptyset|\\\{ ?\\\}|empty set|(?:solution set is )?empty",
}
"""Ways to say that there is no answer; each says something else."""

_EMPTY = ("no solution", "none", "empty set")
"""What an answer to an equation without solutions may say, and the set of its solutions."""

_ABSENT = {
    name: re.compile(
        r"(?P<subject>.*?)\s*(?:(?:\b(?:there (?:is|are|exists?)|it|they|is|are|has|have)\b|=|\\in(?![a-z])|:) ?){0,3}"
        rf"(?:the )?(?:{ways})[\s.!]*"
    )
    for name, ways in _ABSENCES.items()
}
_SUBJECT = re.compile(
    r"(?:the |this |its )?(?:(?:limit|value|function|expression|quantity|slope|integral|derivative|inverse|equation"
    r"|system|inequality|problem|answer)\s*)?"
)


def read_absence(text: str) -> str:
    """Return the absence of an answer that a text states, one of ``_ABSENCES``; nothing if it states none."""
    words = " ".join(re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text).replace("\\quad", " ").split())
    for name, pattern in _ABSENT.items():
        absent = pattern.fullmatch(words.casefold().replace("\\infty", ""))
        if absent and (_SUBJECT.fullmatch(absent["subject"]) or _is_short_name(absent["subject"])):
            return name
    return ""


def _is_short_name(text: str) -> bool:
    return is_value_name(text) and (len(text) < 3 or re.search(r"[\\(]", text) is not None)


def is_absence(reference: str) -> bool:
    """Whether a reference says that there is no answer: ``no solution``, ``DNE``, ``undefined``, the empty set."""
    return bool(read_absence(reference))


def is_same_absence(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer says that there is none in the same sense, and nothing else."""
    ours, theirs = read_absence(answer), read_absence(reference)
    return ours == theirs or (ours in _EMPTY and theirs in _EMPTY)


def _normalise_words(text: str) -> str:
    """Return the words of a text without case, article, hyphens between words and full stops of abbreviations."""
    words = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])", " ", read_words(text).casefold())
    return re.sub(r"^(?:the|a|an) ", "", re.sub(r"(?<=[^\W\d_])\.(?= [^\W\d_])", "", words))
