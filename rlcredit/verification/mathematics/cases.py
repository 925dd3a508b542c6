"""Functions by cases."""

import itertools
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.matrices import read_table
from rlcredit.verification.mathematics.named_values import rename_letters
from rlcredit.verification.mathematics.ranges import RealInterval, is_same_number_range, measure_end, read_range
from rlcredit.verification.mathematics.structure import has_matching_items, split_outside_brackets, squeeze_blanks

_CONDITION = re.compile(r"^(?:\\text\{\s*)?(?:if|for|when|where)(?![A-Za-z])\s*\}?\s*|[.,;]$", re.IGNORECASE)
_IF = re.compile(r"\s*,?\s*(?:\\text\{\s*)?\b(?:if|for|when)\b\s*\}?\s*", re.IGNORECASE)
_OTHERWISE = re.compile(r"(?:\\text\{\s*)?(?:otherwise|else|elsewhere)\s*\.?\s*\}?", re.IGNORECASE)
_OPPOSITES = (("even", "odd"), ("odd", "even"), ("rational", "irrational"), ("irrational", "rational"))


class Case(NamedTuple):
    """A value, and the condition under which a function has it; without one it has it otherwise."""

    value: str
    condition: str


def read_cases(text: str) -> list[Case]:
    """Return the cases of a function; none if a text is no such function."""
    table = read_table(text)
    cases = list[Case]()
    for row in table.rows if table and table.kind == "cases" else []:
        cells = row if len(row) > 1 else _split_value_from_condition(row[0])
        if len(cells) != 2:
            return []
        condition = _CONDITION.sub("", _CONDITION.sub("", cells[1].strip()).strip()).strip()
        cases.append(Case(cells[0].strip().rstrip(","), "" if _OTHERWISE.fullmatch(condition) else condition))
    return cases


def _split_value_from_condition(text: str) -> list[str]:
    cells = _IF.split(text, maxsplit=1)
    return cells if len(cells) == 2 else split_outside_brackets(text, ",")


def write_system(text: str) -> str:
    """Return the equations of a system as a list; any other text as it is."""
    table = read_table(text)
    system = table is not None and table.kind == "cases" and not read_cases(text)
    return ", ".join(cell for row in table.rows for cell in row) if table and system else text


def is_system(reference: str) -> bool:
    """Whether a reference is a system of equations."""
    return write_system(reference) != reference


def is_same_system(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer is the same equations, or values, one below the other or beside each other."""
    return compare.is_equal(write_system(answer), write_system(reference))


def is_function_by_cases(reference: str) -> bool:
    """Whether a reference is a function by cases."""
    return bool(read_cases(reference))


def is_same_function_by_cases(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same value under each condition, in whatever order its cases stand."""
    ours, theirs = read_cases(answer), read_cases(reference)
    ranges = [read_range(case.condition) for case in ours + theirs if case.condition]
    spans = [span for span in ranges if span is not None]
    names = frozenset[str]().union(*(span.names for span in spans))
    ends = {end for span in spans for interval in span.intervals for end in interval[1:3]}
    values = [value for end in ends if (value := measure_end(end)) is not None]
    if ours and len(spans) == len(ranges) and len(names) == 1 and len(values) == len(ends):
        return _has_same_values(ours, theirs, next(iter(names)), sorted(set(values)), compare)
    return has_matching_items(
        _name_opposite(ours), _name_opposite(theirs), lambda our, their: _is_same_case(our, their, compare)
    )


def _has_same_values(
    ours: Sequence[Case], theirs: Sequence[Case], name: str, ends: Sequence[Fraction | float], compare: AnswerEquality
) -> bool:
    """Whether two functions of one name have the same value at each end of a condition, and between the ends."""
    finite = [Fraction(end) for end in ends if math.isfinite(end)]
    outer_places = [finite[0] - 1, finite[-1] + 1] if finite else [Fraction(0)]
    middle_places = [(low + high) / 2 for low, high in itertools.pairwise(finite)]
    for place in sorted({*finite, *outer_places, *middle_places}):
        names = {name: f"({place})"} if place in finite else {}
        values = [_list_values(cases, place) for cases in (ours, theirs)]
        pairs = [pair for pair in itertools.product(*values) if len(set(pair)) > 1]
        equal = all(compare.is_equal(rename_letters(our, names), rename_letters(their, names)) for our, their in pairs)
        if bool(values[0]) != bool(values[1]) or not equal:
            return False
    return True


def _list_values(cases: Sequence[Case], place: Fraction) -> list[str]:
    """Return the values that the cases give a function at a number: several if their conditions overlap."""
    ranges = [(case.value, read_range(case.condition)) for case in cases if case.condition]
    values = [value for value, span in ranges if span and any(_is_inside(piece, place) for piece in span.intervals)]
    return [squeeze_blanks(value) for value in values or [case.value for case in cases if not case.condition]]


def _is_inside(interval: RealInterval, place: Fraction) -> bool:
    low, high = measure_end(interval.low), measure_end(interval.high)
    assert low is not None
    assert high is not None
    is_after = place > low or (place == low and interval.opening == "[")
    return is_after and (place < high or (place == high and interval.closing == "]"))


def _name_opposite(cases: Sequence[Case]) -> list[Case]:
    """Return two cases of which the second is otherwise with its condition, where the first one's has an opposite."""
    cases = [case._replace(condition=_read_condition_words(case.condition)) for case in cases]
    if len(cases) == 2 and not cases[1].condition:
        for word, opposite in _OPPOSITES:
            condition = re.sub(rf"\b{word}\b", opposite, cases[0].condition)
            if condition != cases[0].condition:
                return [cases[0], cases[1]._replace(condition=condition)]
    return list(cases)


def _read_condition_words(text: str) -> str:
    words = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text)
    return re.sub(r"\b(?:is|are|an?|integer)\b", "", words.casefold()) if words != text else text


def _is_same_case(ours: Case, theirs: Case, compare: AnswerEquality) -> bool:
    is_same = "".join(ours.condition.split()) == "".join(theirs.condition.split())
    if not is_same and ours.condition and read_range(theirs.condition):
        is_same = is_same_number_range(ours.condition, theirs.condition, compare)
    return is_same and compare.is_equal(ours.value, theirs.value)
