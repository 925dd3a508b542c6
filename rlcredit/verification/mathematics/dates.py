"""Dates and times in whatever notation; scores, ratios and ranges by their characters."""

import re

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.named_values import drop_leading_name
from rlcredit.verification.mathematics.text_kinds import read_words

_UNCOMPUTED = re.compile(r"\d+(?:\s*[-/.]\s*\d+){2,}|\d+(?:\s*:\s*\d+)+|\d+\s*-\s*\d+")
_MONTHS = re.findall(r"\w+", "january february march april may june july august september october november december")
_MONTH_NUMBERS = {name[:3]: number for number, name in enumerate(_MONTHS, 1)}
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
    month = _MONTH_NUMBERS.get(parts["month"][:3]) or int(parts["month"])
    day = int(parts["day"])
    return (int(parts["year"] or 0), month, day) if month <= 12 and day <= 31 else None


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
    text = read_words(reference).casefold()
    return bool(_UNCOMPUTED.fullmatch(text) or _read_date(text) or _read_clock(text))


def is_same_date_or_score(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer is the same date or time in another notation, or has the same characters."""
    ours, theirs = (read_words(drop_leading_name(text)).casefold() for text in (answer, reference))
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
