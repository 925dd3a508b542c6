r"""Sets of real numbers: intervals, inequalities, unions."""

import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.named_values import drop_leading_name, is_variable, split_equation_sides
from rlcredit.verification.mathematics.numbers import read_normal_rational
from rlcredit.verification.mathematics.structure import (
    BOTH,
    EITHER,
    expand_plus_minus,
    has_matching_items,
    mark_conjunctions,
    read_brackets,
    split_list_items,
    split_outside_brackets,
)

_REALS = re.compile(r"\\mathbb\s*\{?R\}?|(?:\\text\{)?(?:all )?(?:real numbers|reals)\}?", re.IGNORECASE)
ORDER = re.compile(r"(\\(?:le|ge|ne)(?![A-Za-z])|<|>)")
FLIPPED = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le", r"\ne": r"\ne"}
MEMBER = re.compile(r"(\\?[A-Za-z](?:_\{\w+\})?)\s*\\in(?![A-Za-z])\s*(.+)", re.DOTALL)
_BUILDER = re.compile(r"\\\{\s*\\?[A-Za-z]\s*(?:\\in\s*\\mathbb\s*\{?R\}?\s*)?(?:\\mid|\||:)\s*(.+)\\\}", re.DOTALL)
_WITHOUT = re.compile(r"(.+?)\s*(?:\\setminus|\\backslash|(?<=\})\s*-)\s*(\\?\{.+\})", re.DOTALL)
_EXCEPT = re.compile(
    r"^(?:\\text\{)?\s*all real numbers(?: x)?,? (?:except|but)(?: for)?\s*\}?\s*([^\\{}]+|-?\\frac\{\d+\}\{\d+\})$",
    re.IGNORECASE,
)
_REAL_NAME = re.compile(r"^\\?[A-Za-z]\s*\\in\s*\\mathbb\s*\{?R\}?\s*[,:]\s*(?=\\?[A-Za-z]\s*(?:\\|<|>))")
_SIZE = re.compile(r"\|([^|]+)\|")
_NUMBER = r"(?:\d+(?:\.\d+|\s*/\s*\d+)?|\\frac\{\d+\}\{\d+\})"
_TERM = re.compile(
    rf"(?P<sign>[+-]?)\s*(?:(?P<number>{_NUMBER})?\s*(?:\\cdot\s*)?(?P<name>(?!\\frac)\\?[A-Za-z]+(?:_\{{\w+\}})?)"
    rf"|\\frac\{{\s*(?P<top>[A-Za-z])\s*\}}\{{(?P<bottom>\d+)\}}|(?P<constant>{_NUMBER}))\s*"
)
_INFINITY = r"\infty"


class RealInterval(NamedTuple):
    """An interval; of a single number both ends are the number, and closed."""

    opening: str
    low: str
    high: str
    closing: str


class NumberRange(NamedTuple):
    """A set of real numbers.

    Attributes:
        intervals: What it consists of; where all ends are rational, in order and apart.
        names: Names of its members, where the text tells one.

    """

    intervals: list[RealInterval]
    names: frozenset[str] = frozenset()


_ALL = RealInterval("(", f"-{_INFINITY}", _INFINITY, ")")


def read_range(text: str) -> NumberRange | None:
    r"""Return the set that a union, an inequality or an interval describes; None if it is none of these.

    Example:
        >>> [tuple(piece) for piece in read_range(r"x > 2").intervals]
        [('(', '2', '\\infty', ')')]
        >>> [tuple(piece) for piece in read_range(r"(1, 3) \cup [2, 4)").intervals]
        [('(', '1', '4', ')')]
        >>> [tuple(piece) for piece in read_range(r"|x - 2| > 1").intervals], read_range("x + 1")
        ([('(', '-\\infty', '1', ')'), ('(', '3', '\\infty', ')')], None)

    """
    text = _REAL_NAME.sub("", text)
    member = MEMBER.fullmatch(text)
    if member:
        text = member[2].strip()
    if builder := _BUILDER.fullmatch(text):
        text = builder[1].strip()
    text = _EXCEPT.sub(r"\\mathbb{R} \\setminus \\{\1\\}", text)
    parts = split_outside_brackets(mark_conjunctions(text), [r"\cup", *EITHER])
    ranges = [_read_union_part(part) for part in parts]
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges):
        return None
    names = frozenset[str]().union(*(each.names for each in known), [member[1]] if member else [])
    names = frozenset() if builder else names
    united = _unite_intervals([interval for each in known for interval in each.intervals])
    return NumberRange(united, names) if united and (member is None or len(names) == 1) else None


def _read_union_part(text: str) -> NumberRange | None:
    if without := _WITHOUT.fullmatch(text):
        whole = _read_union_part(without[1].strip())
        return whole and _exclude_numbers(whole, split_list_items(re.sub(r"^\\?\{|\\?\}$", "", without[2])))
    if _REALS.fullmatch(text):
        return NumberRange([_ALL])
    separators = [*BOTH, r"\cap", *([","] if ORDER.search(text) else [])]
    parts = _list_exclusions(split_outside_brackets(text, separators))
    if len(parts) > 1:
        return _intersect_ranges([_read_union_part(part) for part in parts])
    if builder := _BUILDER.fullmatch(text):
        text = builder[1].strip()
    if ORDER.search(text):
        return _read_inequality(text)
    name, *values = split_equation_sides(text)
    if len(values) == 1:
        point = RealInterval("[", values[0], values[0], "]")
        return NumberRange([point], frozenset([name])) if is_variable(name) else None
    brackets = read_brackets(text)
    if brackets is None:
        return None
    opening, inside, closing = brackets
    ends = [end.removeprefix("+").strip() for end in split_outside_brackets(inside, ",;")]
    if opening == r"\{":
        return NumberRange([RealInterval("[", element, element, "]") for element in split_list_items(inside)])
    if len(ends) != 2 or opening not in "([" or closing not in ")]":
        return None
    return NumberRange([RealInterval(opening, ends[0], ends[1], closing)])


def _list_exclusions(parts: Sequence[str]) -> list[str]:
    r"""Return ``x \ne 0``, ``\pm 2`` as ``x \ne 0``, ``x \ne 2`` and ``x \ne -2``; other parts as they are."""
    name, excluded, first = parts[0].partition(r"\ne")
    if not excluded or any(ORDER.search(part) for part in (name, first)):
        return list(parts)
    values = [first, *(part for part in parts[1:] if not ORDER.search(part))]
    excluding = [rf"{name}\ne {each}" for value in values for each in expand_plus_minus(value)]
    return excluding + [part for part in parts[1:] if ORDER.search(part)]


def _read_inequality(text: str) -> NumberRange | None:
    """Return the numbers that a chain of comparisons of one name allows."""
    sides = [side.strip() for side in ORDER.split(text)]
    values, signs = sides[::2], sides[1::2]
    if not all(values) or len(values) > 3 or (len(values) == 3 and len({sign in ("<", r"\le") for sign in signs}) > 1):
        return None
    if len(values) == 3 and r"\ne" in signs:
        return None
    links = list(zip(values, signs, values[1:], strict=False))
    if len(values) == 3:
        links[0] = (values[1], FLIPPED[signs[0]], values[0])
    return _intersect_ranges([_solve_link(*link) for link in links])


def _solve_link(left: str, sign: str, right: str) -> NumberRange | None:
    """Return the numbers for which one comparison holds; None where its one side is not linear in a name."""
    if (size := _SIZE.fullmatch(left)) or _SIZE.fullmatch(right):
        return _solve_distance(size[1], sign, right) if size else _solve_link(right, FLIPPED[sign], left)
    if is_variable(left):
        return NumberRange(_build_rays(sign, right), frozenset([left]))
    if is_variable(right):
        return NumberRange(_build_rays(FLIPPED[sign], left), frozenset([right]))
    ours, theirs = read_linear(left), read_linear(right)
    if ours is None or theirs is None or bool(ours[2]) == bool(theirs[2]):
        return None
    if not ours[2]:
        ours, theirs, sign = theirs, ours, FLIPPED[sign]
    end = str((theirs[1] - ours[1]) / ours[0])
    return NumberRange(_build_rays(sign if ours[0] > 0 else FLIPPED[sign], end), frozenset([ours[2]]))


def _solve_distance(inside: str, sign: str, limit: str) -> NumberRange | None:
    """Return the numbers whose distance from another compares with a limit in a way."""
    number = read_normal_rational(limit)
    if number is not None and number < 0:
        return None
    below = str(-number) if number is not None else f"-{limit}"
    lower, upper = _solve_link(inside, FLIPPED[sign], below), _solve_link(inside, sign, limit)
    if sign in ("<", r"\le", r"\ne"):
        return _intersect_ranges([lower, upper])
    return lower and upper and NumberRange(_unite_intervals(lower.intervals + upper.intervals), upper.names)


def read_linear(text: str) -> tuple[Fraction, Fraction, str] | None:
    """Return factor, constant and name of ``2x + 1``; nothing but the constant of a number."""
    factor, constant, names, end = Fraction(0), Fraction(0), set[str](), 0
    text = text.strip()
    while end < len(text):
        term = _TERM.match(text, end)
        if term is None or (end and not term["sign"]):
            return None
        value = read_normal_rational(term["constant"].strip()) if term["constant"] else Fraction(1)
        if value is None:
            return None
        value = -value if term["sign"] == "-" else value
        if term["constant"]:
            constant += value
        else:
            number = read_normal_rational(term["number"] or "1") or Fraction(1)
            factor += value * number / Fraction(term["bottom"] or 1)
            names.add(term["name"] or term["top"])
        end = term.end()
    if len(names) > 1 or not all(map(is_variable, names)) or (names and not factor):
        return None
    return factor, constant, next(iter(names), "")


def _build_rays(sign: str, end: str) -> list[RealInterval]:
    """Return the numbers that compare with one number in a way."""
    below, above = RealInterval("(", f"-{_INFINITY}", end, ")"), RealInterval("(", end, _INFINITY, ")")
    return {
        "<": [below],
        ">": [above],
        r"\le": [below._replace(closing="]")],
        r"\ge": [above._replace(opening="[")],
        r"\ne": [below, above],
    }[sign]


def measure_end(text: str) -> Fraction | float | None:
    """Return the value of the end of an interval; None where only computer algebra knows it."""
    infinite = {_INFINITY: math.inf, f"-{_INFINITY}": -math.inf}.get(text)
    return read_normal_rational(text) if infinite is None else infinite


def _unite_intervals(intervals: Iterable[RealInterval]) -> list[RealInterval]:
    """Return the intervals of a union, merged where one goes on where another ends."""
    left, united = list(dict.fromkeys(intervals)), list[RealInterval]()
    ends = [end for each in left for end in (each.low, each.high)]
    values = {end: value for end in ends if (value := measure_end(end)) is not None}
    ordered = len(values) == len(set(ends))
    if ordered:
        if any(values[each.low] > values[each.high] for each in left):
            return left
        left.sort(key=lambda each: (values[each.low], each.opening != "["))
    for each in left:
        place = next((place for place, before in enumerate(united) if _goes_on(before, each, values)), None)
        if place is None:
            united.append(each)
            continue
        before = united[place]
        highs = [(before.high, before.closing), (each.high, each.closing)]
        high = max(highs, key=lambda end: (values[end[0]], end[1] == "]")) if ordered else highs[1]
        united[place] = RealInterval(before.opening, before.low, *high)
    return united


def _goes_on(before: RealInterval, after: RealInterval, values: dict[str, Fraction | float]) -> bool:
    """Whether the second of two intervals begins where the first ends; earlier too, if both are of known numbers."""
    if before.high == after.low or values.get(before.high, 0) == values.get(after.low, ""):
        return before.closing == "]" or after.opening == "["
    return all(end in values for end in before[1:3] + after[1:3]) and values[after.low] < values[before.high]


def _intersect_ranges(ranges: Sequence[NumberRange | None]) -> NumberRange | None:
    """Return what several ranges of one name have in common; None where nothing is, or where that is not known."""
    common = NumberRange([_ALL])
    for each in ranges:
        if each is None:
            return None
        pieces = [_intersect_pair(our, their) for our in common.intervals for their in each.intervals]
        if None in pieces:
            return None
        common = NumberRange([piece for piece in pieces if piece], common.names | each.names)
    return common if common.intervals and len(common.names) < 2 else None


def _intersect_pair(ours: RealInterval, theirs: RealInterval) -> RealInterval | tuple[()] | None:
    """Return the numbers in both of two intervals; nothing if there is none, None if the order of ends is not known."""
    low = _choose_end([(each.low, each.opening) for each in (ours, theirs)], upper=False)
    high = _choose_end([(each.high, each.closing) for each in (ours, theirs)], upper=True)
    if low is None or high is None:
        return None
    lowest, highest = measure_end(low[0]), measure_end(high[0])
    if lowest is None or highest is None or lowest < highest or (lowest == highest and low[1] + high[1] == "[]"):
        return RealInterval(low[1], low[0], high[0], high[1])
    return ()


def _choose_end(ends: Sequence[tuple[str, str]], upper: bool) -> tuple[str, str] | None:
    """Return the end of what two intervals have in common, with its bracket."""
    boundless = _INFINITY if upper else f"-{_INFINITY}"
    bounded = [end for end in dict.fromkeys(ends) if end[0] != boundless] or list(ends[:1])
    if len(bounded) == 1:
        return bounded[0]
    values = [value for end in bounded if (value := measure_end(end[0])) is not None]
    strict = [(-value if upper else value, end[1] in "()") for value, end in zip(values, bounded, strict=False)]
    return bounded[strict.index(max(strict))] if len(values) == len(bounded) else None


def _exclude_numbers(whole: NumberRange, left_out: Sequence[str]) -> NumberRange | None:
    return _intersect_ranges([whole, *(NumberRange(_build_rays(r"\ne", number)) for number in left_out)])


def is_number_range(reference: str) -> bool:
    """Whether a reference is a set of numbers that cannot be taken for a point: ``(1, 2)`` alone can."""
    known = read_range(reference)
    if known is None or all(each.low == each.high for each in known.intervals):
        return False
    brackets = read_brackets(reference)
    return brackets is None or brackets[::2] != ("(", ")") or _INFINITY in brackets[1]


def is_same_number_range(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer describes the same numbers, in whatever notation, or the same comparison of several names."""
    ours, theirs = read_range(drop_leading_name(answer)), read_range(reference)
    if ours is None or theirs is None or (ours.names and theirs.names and ours.names != theirs.names):
        return is_same_inequality(answer, reference, compare)
    return len(ours.names) < 2 and has_matching_items(
        ours.intervals, theirs.intervals, lambda our, their: _is_same_interval(our, their, compare)
    )


def _is_same_interval(ours: RealInterval, theirs: RealInterval, compare: AnswerEquality) -> bool:
    if (ours.opening, ours.closing) != (theirs.opening, theirs.closing):
        return False
    return all(our == their or compare.is_equal(our, their) for our, their in zip(ours[1:3], theirs[1:3], strict=True))


def is_inequality(reference: str) -> bool:
    """Whether a reference compares two sides, or more."""
    return ORDER.search(reference) is not None


def is_same_inequality(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer makes the same comparisons, each multiplied by whatever keeps its solutions."""
    ours, theirs = _list_links(answer), _list_links(reference)
    return bool(ours and theirs) and has_matching_items(
        ours, theirs, lambda our, their: _is_same_link(our, their, compare)
    )


def _list_links(text: str) -> list[tuple[str, str, str]]:
    """Return the comparisons that a text makes, the lower side first; none if a side is missing."""
    links = list[tuple[str, str, str]]()
    for part in split_outside_brackets(mark_conjunctions(text), [",", *BOTH]):
        sides = [side.strip() for side in ORDER.split(part)]
        if len(sides) < 3 or not all(sides):
            return []
        for low, sign, high in zip(sides[::2], sides[1::2], sides[2::2], strict=False):
            links.append((high, FLIPPED[sign], low) if sign in (">", r"\ge") else (low, sign, high))
    return links


def _is_same_link(ours: tuple[str, str, str], theirs: tuple[str, str, str], compare: AnswerEquality) -> bool:
    sign = theirs[1]
    differences = [f"({low}) - ({high})" for low, _, high in (ours, theirs)]
    return ours[1] == sign and compare.values.is_proportional(*differences, positive=sign != r"\ne")
