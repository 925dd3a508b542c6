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
    AND_WORDS,
    OR_WORDS,
    expand_plus_minus,
    has_matching_items,
    mark_conjunctions,
    read_brackets,
    split_list_items,
    split_outside_brackets,
)

_REALS = re.compile(r"\\mathbb\s*\{?R\}?|(?:\\text\{)?(?:all )?(?:real numbers|reals)\}?", re.IGNORECASE)
ORDER_SIGN = re.compile(r"(\\(?:le|ge|ne)(?![A-Za-z])|<|>)")
FLIPPED_SIGNS = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le", r"\ne": r"\ne"}
SET_MEMBER = re.compile(r"(\\?[A-Za-z](?:_\{\w+\})?)\s*\\in(?![A-Za-z])\s*(.+)", re.DOTALL)
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
    member = SET_MEMBER.fullmatch(text)
    if member:
        text = member[2].strip()
    if builder := _BUILDER.fullmatch(text):
        text = builder[1].strip()
    text = _EXCEPT.sub(r"\\mathbb{R} \\setminus \\{\1\\}", text)
    parts = split_outside_brackets(mark_conjunctions(text), [r"\cup", *OR_WORDS])
    ranges = [_read_union_part(part) for part in parts]
    spans = [span for span in ranges if span is not None]
    if len(spans) < len(ranges):
        return None
    names = frozenset[str]().union(*(span.names for span in spans), [member[1]] if member else [])
    names = frozenset() if builder else names
    pieces = _unite_intervals([interval for span in spans for interval in span.intervals])
    return NumberRange(pieces, names) if pieces and (member is None or len(names) == 1) else None


def _read_union_part(text: str) -> NumberRange | None:
    if exclusion := _WITHOUT.fullmatch(text):
        whole = _read_union_part(exclusion[1].strip())
        return whole and _exclude_numbers(whole, split_list_items(re.sub(r"^\\?\{|\\?\}$", "", exclusion[2])))
    if _REALS.fullmatch(text):
        return NumberRange([_ALL])
    separators = [*AND_WORDS, r"\cap", *([","] if ORDER_SIGN.search(text) else [])]
    parts = _list_exclusions(split_outside_brackets(text, separators))
    if len(parts) > 1:
        return _intersect_ranges([_read_union_part(part) for part in parts])
    if builder := _BUILDER.fullmatch(text):
        text = builder[1].strip()
    if ORDER_SIGN.search(text):
        return _read_inequality(text)
    name, *values = split_equation_sides(text)
    if len(values) == 1:
        point = RealInterval("[", values[0], values[0], "]")
        return NumberRange([point], frozenset([name])) if is_variable(name) else None
    brackets = read_brackets(text)
    if brackets is None:
        return None
    opening, content, closing = brackets
    ends = [end.removeprefix("+").strip() for end in split_outside_brackets(content, ",;")]
    if opening == r"\{":
        return NumberRange([RealInterval("[", element, element, "]") for element in split_list_items(content)])
    if len(ends) != 2 or opening not in "([" or closing not in ")]":
        return None
    return NumberRange([RealInterval(opening, ends[0], ends[1], closing)])


def _list_exclusions(parts: Sequence[str]) -> list[str]:
    r"""Return ``x \ne 0``, ``\pm 2`` as ``x \ne 0``, ``x \ne 2`` and ``x \ne -2``; other parts as they are."""
    name, sign, first_value = parts[0].partition(r"\ne")
    if not sign or any(ORDER_SIGN.search(part) for part in (name, first_value)):
        return list(parts)
    values = [first_value, *(part for part in parts[1:] if not ORDER_SIGN.search(part))]
    excluding = [rf"{name}\ne {alternative}" for value in values for alternative in expand_plus_minus(value)]
    return excluding + [part for part in parts[1:] if ORDER_SIGN.search(part)]


def _read_inequality(text: str) -> NumberRange | None:
    """Return the numbers that a chain of comparisons of one name allows."""
    sides = [side.strip() for side in ORDER_SIGN.split(text)]
    values, signs = sides[::2], sides[1::2]
    if not all(values) or len(values) > 3 or (len(values) == 3 and len({sign in ("<", r"\le") for sign in signs}) > 1):
        return None
    if len(values) == 3 and r"\ne" in signs:
        return None
    links = list(zip(values, signs, values[1:], strict=False))
    if len(values) == 3:
        links[0] = (values[1], FLIPPED_SIGNS[signs[0]], values[0])
    return _intersect_ranges([_solve_link(*link) for link in links])


def _solve_link(side: str, sign: str, limit: str) -> NumberRange | None:
    """Return the numbers for which one comparison holds; None where its one side is not linear in a name."""
    if (size := _SIZE.fullmatch(side)) or _SIZE.fullmatch(limit):
        return _solve_distance(size[1], sign, limit) if size else _solve_link(limit, FLIPPED_SIGNS[sign], side)
    if is_variable(side):
        return NumberRange(_build_rays(sign, limit), frozenset([side]))
    if is_variable(limit):
        return NumberRange(_build_rays(FLIPPED_SIGNS[sign], side), frozenset([limit]))
    ours, theirs = read_linear(side), read_linear(limit)
    if ours is None or theirs is None or bool(ours[2]) == bool(theirs[2]):
        return None
    if not ours[2]:
        ours, theirs, sign = theirs, ours, FLIPPED_SIGNS[sign]
    end = str((theirs[1] - ours[1]) / ours[0])
    return NumberRange(_build_rays(sign if ours[0] > 0 else FLIPPED_SIGNS[sign], end), frozenset([ours[2]]))


def _solve_distance(content: str, sign: str, limit: str) -> NumberRange | None:
    """Return the numbers whose distance from another compares with a limit in a way."""
    number = read_normal_rational(limit)
    if number is not None and number < 0:
        return None
    negative_limit = str(-number) if number is not None else f"-{limit}"
    lower, upper = _solve_link(content, FLIPPED_SIGNS[sign], negative_limit), _solve_link(content, sign, limit)
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
    lower_ray, upper_ray = RealInterval("(", f"-{_INFINITY}", end, ")"), RealInterval("(", end, _INFINITY, ")")
    return {
        "<": [lower_ray],
        ">": [upper_ray],
        r"\le": [lower_ray._replace(closing="]")],
        r"\ge": [upper_ray._replace(opening="[")],
        r"\ne": [lower_ray, upper_ray],
    }[sign]


def measure_end(text: str) -> Fraction | float | None:
    """Return the value of the end of an interval; None where only computer algebra knows it."""
    infinite = {_INFINITY: math.inf, f"-{_INFINITY}": -math.inf}.get(text)
    return read_normal_rational(text) if infinite is None else infinite


def _unite_intervals(intervals: Iterable[RealInterval]) -> list[RealInterval]:
    """Return the intervals of a union, merged where one goes on where another ends."""
    pieces, union = list(dict.fromkeys(intervals)), list[RealInterval]()
    ends = [end for piece in pieces for end in (piece.low, piece.high)]
    values = {end: value for end in ends if (value := measure_end(end)) is not None}
    is_ordered = len(values) == len(set(ends))
    if is_ordered:
        if any(values[piece.low] > values[piece.high] for piece in pieces):
            return pieces
        pieces.sort(key=lambda piece: (values[piece.low], piece.opening != "["))
    for piece in pieces:
        place = next((place for place, union_piece in enumerate(union) if _goes_on(union_piece, piece, values)), None)
        if place is None:
            union.append(piece)
            continue
        union_piece = union[place]
        highs = [(union_piece.high, union_piece.closing), (piece.high, piece.closing)]
        high = max(highs, key=lambda end: (values[end[0]], end[1] == "]")) if is_ordered else highs[1]
        union[place] = RealInterval(union_piece.opening, union_piece.low, *high)
    return union


def _goes_on(lower: RealInterval, upper: RealInterval, values: dict[str, Fraction | float]) -> bool:
    """Whether the second of two intervals begins where the first ends; earlier too, if both are of known numbers."""
    if lower.high == upper.low or values.get(lower.high, 0) == values.get(upper.low, ""):
        return lower.closing == "]" or upper.opening == "["
    return all(end in values for end in lower[1:3] + upper[1:3]) and values[upper.low] < values[lower.high]


def _intersect_ranges(ranges: Sequence[NumberRange | None]) -> NumberRange | None:
    """Return the numbers in all of several ranges of one name; None if there are none, or that is not known."""
    common = NumberRange([_ALL])
    for span in ranges:
        if span is None:
            return None
        pieces = [_intersect_pair(our, their) for our in common.intervals for their in span.intervals]
        if None in pieces:
            return None
        common = NumberRange([piece for piece in pieces if piece], common.names | span.names)
    return common if common.intervals and len(common.names) < 2 else None


def _intersect_pair(ours: RealInterval, theirs: RealInterval) -> RealInterval | tuple[()] | None:
    """Return the numbers in both of two intervals; nothing if there is none, None if the order of ends is not known."""
    low = _choose_end([(interval.low, interval.opening) for interval in (ours, theirs)], upper=False)
    high = _choose_end([(interval.high, interval.closing) for interval in (ours, theirs)], upper=True)
    if low is None or high is None:
        return None
    lowest, highest = measure_end(low[0]), measure_end(high[0])
    if lowest is None or highest is None or lowest < highest or (lowest == highest and low[1] + high[1] == "[]"):
        return RealInterval(low[1], low[0], high[0], high[1])
    return ()


def _choose_end(ends: Sequence[tuple[str, str]], upper: bool) -> tuple[str, str] | None:
    """Return the end of what two intervals have in common, with its bracket."""
    boundless = _INFINITY if upper else f"-{_INFINITY}"
    bounds = [end for end in dict.fromkeys(ends) if end[0] != boundless] or list(ends[:1])
    if len(bounds) == 1:
        return bounds[0]
    values = [value for end in bounds if (value := measure_end(end[0])) is not None]
    strict = [(-value if upper else value, end[1] in "()") for value, end in zip(values, bounds, strict=False)]
    return bounds[strict.index(max(strict))] if len(values) == len(bounds) else None


def _exclude_numbers(whole: NumberRange, left_out: Sequence[str]) -> NumberRange | None:
    return _intersect_ranges([whole, *(NumberRange(_build_rays(r"\ne", number)) for number in left_out)])


def is_number_range(reference: str) -> bool:
    """Whether a reference is a set of numbers that cannot be taken for a point: ``(1, 2)`` alone can."""
    span = read_range(reference)
    if span is None or all(interval.low == interval.high for interval in span.intervals):
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
    return ORDER_SIGN.search(reference) is not None


def is_same_inequality(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer makes the same comparisons, each multiplied by whatever keeps its solutions."""
    ours, theirs = _list_links(answer), _list_links(reference)
    return bool(ours and theirs) and has_matching_items(
        ours, theirs, lambda our, their: _is_same_link(our, their, compare)
    )


def _list_links(text: str) -> list[tuple[str, str, str]]:
    """Return the comparisons that a text makes, the lower side first; none if a side is missing."""
    links = list[tuple[str, str, str]]()
    for part in split_outside_brackets(mark_conjunctions(text), [",", *AND_WORDS]):
        sides = [side.strip() for side in ORDER_SIGN.split(part)]
        if len(sides) < 3 or not all(sides):
            return []
        for low, sign, high in zip(sides[::2], sides[1::2], sides[2::2], strict=False):
            links.append((high, FLIPPED_SIGNS[sign], low) if sign in (">", r"\ge") else (low, sign, high))
    return links


def _is_same_link(ours: tuple[str, str, str], theirs: tuple[str, str, str], compare: AnswerEquality) -> bool:
    sign = theirs[1]
    differences = [f"({low}) - ({high})" for low, _, high in (ours, theirs)]
    return ours[1] == sign and compare.values.is_proportional(*differences, positive=sign != r"\ne")
