"""Kinds that are compared as they are written: texts by words, letters, dates, scores and digits by characters."""

import re

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.named_values import drop_leading_name, is_value_name
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
    r"\b(?:or|but|maybe|perhaps|possibly|sometimes|unless|depends|unsure|unclear|unknown|(?:not|never) (?:really|sure|always"
    r"|yes|no|true|false)|however|although|either|neither|both|guess|think|wait|actually)\b"
)


def _is_reasoned(answer: str, word: str) -> bool:
    """Whether an answer says yes, no, true or false, and then why, without doubt and without the opposite."""
    reasoned = _REASONED.fullmatch(answer)
    if word not in _OPPOSITES or reasoned is None or reasoned[1] != word:
        return False
    return not _DOUBT.search(reasoned[2]) and not re.search(rf"\b{_OPPOSITES[word]}\b", reasoned[2])


_NOUN = r"(?:solutions?|roots?)"
_ABSENCES = {
    "no limit": r"dne|(?:does ?n[o']t|do not|cannot) exist|non-?existent|no limit(?: exists)?",
    "undefined": r"undefined|not defined",
    "no solution": rf"no {_NOUN}(?: exists?)?|has no {_NOUN}|no {_NOUN} found|inconsistent|{_NOUN} (?:does|do) ?n[o']t exist",
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
    r"(?:the |this |that |its )?(?:(?:limit|value|function|expression|quantity|slope|integral|derivative|inverse|equation"
    r"|system(?: of equations)?|inequality|problem|answer)\s*)?"
)


def read_absence(text: str) -> str:
    """Return which absence of an answer a text states, one of ``_ABSENCES``; nothing if it states none."""
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


_LETTER = re.compile(r"(?:\(\s*)?(?:\\text\{)?\s*\(?\s*([A-J])\s*\)?\s*\}?\s*\)?")
_KEYWORD = r"(?:(?i:options?|choices?|answers?)\s+)"
_CHOICE = re.compile(
    rf"(?P<keyword>{_KEYWORD})?(?P<open>[(\[])?\s*(?P<letter>[A-Za-z])\s*(?P<close>[)\]])?"
    r"\s*(?P<mark>[.:)]|-(?=\s))?(?P<rest>(?![A-Za-z'_^]).*)",
    re.DOTALL,
)
_LETTERS_ONLY = re.compile(
    r"(?:[\s,;:/|&.?!()\[\]+-]|(?<![A-Za-z])(?:[A-J]|and|or|nor|then|option|choice|resp|vs|cf|viz)(?![A-Za-z])|\\[a-z]+)*", re.IGNORECASE
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


_UNCOMPUTED = re.compile(r"\d+(?:\s*[-/.]\s*\d+){2,}|\d+(?:\s*:\s*\d+)+|\d+\s*-\s*\d+")
_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = rf"(?P<month>{'|'.join(rf'{name[:3]}(?:{name[3:]}|{name[3:4]})?' for name in _MONTHS)})\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?: ?(?:st|nd|rd|th))?", r"(?P<year>\d{4})"
_WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,? )?"
_DATES = tuple(
    re.compile(rf"{_WEEKDAY}(?:the )?(?:{pattern})")
    for pattern in (
        rf"{_YEAR}([-/.])(?P<month>\d{{1,2}})\2{_DAY}",
        rf"{_MONTH} {_DAY}(?:,? {_YEAR})?",
        rf"{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?",
        rf"{_MONTH},? {_YEAR}",
        rf"(?P<month>\d{{1,2}})([-/.])(?P<day>(?:1[3-9]|2\d|3[01]))\2{_YEAR}",
        rf"(?P<day>(?:1[3-9]|2\d|3[01]))([-/.])(?P<month>\d{{1,2}})\2{_YEAR}",
    )
)
"""Notations of dates, as far as day and month cannot be mistaken for each other."""

_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*(?:([ap])\.?\s?m\.?|(o'clock|h|hrs|hours))?")


def _read_date(text: str) -> tuple[int, int, int] | None:
    """Return year, month and day, 0 for what is not said; None if a text is no date."""
    date = next(filter(None, (pattern.fullmatch(text) for pattern in _DATES)), None)
    if date is None:
        return None
    parts = {"day": "0", "year": "0", **date.groupdict()}
    month = parts["month"]
    number = int(month) if month.isdecimal() else next(
        place for place, name in enumerate(_MONTHS, 1) if name.startswith(month[:3])
    )
    day = int(parts["day"])
    return (int(parts["year"] or 0), number, day) if number <= 12 and day <= 31 else None


def _read_clock(text: str) -> tuple[int, int, int, str] | None:
    """Return hours, minutes and seconds of a time, and which half of the day it names; None if a text is no time."""
    clock = _CLOCK.fullmatch(text)
    if clock is None or not (clock[2] or clock[4]) or int(clock[1]) > 24 or int(clock[2] or 0) > 59:
        return None
    hours, half = int(clock[1]), clock[4] or ""
    if half and 1 <= hours <= 12:
        hours = hours % 12 + 12 * (half == "p")
    return hours, int(clock[2] or 0), int(clock[3] or 0), half or "24" * (hours > 12 or hours == 0)


def is_date_or_score(reference: str) -> bool:
    """Whether a reference is a date or a time, or looks like arithmetic and is none: ``7:30``, ``3-2``."""
    text = _normalise_marks(reference)
    return bool(_UNCOMPUTED.fullmatch(text) or _read_date(text) or _read_clock(text))


def is_same_date_or_score(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer is the same date or time in another notation, or has the same characters."""
    ours, theirs = map(_normalise_marks, (drop_leading_name(answer), drop_leading_name(reference)))
    dates = _read_date(ours), _read_date(theirs)
    if dates[0] and dates[1]:
        return dates[0][1:] == dates[1][1:] and dates[1][0] in (0, dates[0][0])
    times = _read_clock(ours), _read_clock(theirs)
    if times[0] and times[1]:
        return _is_same_time(times[0], times[1])
    return re.sub(r"\s", "", ours) == re.sub(r"\s", "", theirs)


def _is_same_time(ours: tuple[int, int, int, str], theirs: tuple[int, int, int, str]) -> bool:
    """Whether two times are the same; where only the reference names no half of the day, it is not compared."""
    if ours[3] in ("a", "p") and not theirs[3]:
        return (ours[0] % 12, *ours[1:3]) == (theirs[0] % 12, *theirs[1:3])
    return ours[:3] == theirs[:3] and bool(ours[3]) >= bool(theirs[3])


def _normalise_marks(text: str) -> str:
    return " ".join(read_words(text).casefold().split())


_BASED = re.compile(r"\(?\s*([0-9][0-9A-F ]*(?:\.[0-9A-F]+)?)\s*\)?_\{(?:\\text\{)?\s*(\w+)\s*\}?\}")
_BASES = dict(
    zip(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
        map(str, range(2, 13)),
        strict=True,
    )
)


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
