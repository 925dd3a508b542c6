r"""Sets of real numbers: intervals, inequalities, unions."""

import itertools
import re
from collections.abc import Sequence

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.named_values import drop_leading_name, is_variable
from rlcredit.verification.mathematics.numbers import read_normal_rational
from rlcredit.verification.mathematics.structure import (
    BOTH,
    mark_conjunctions,
    read_brackets,
    split_list_items,
    split_outside_brackets,
)

_REALS = re.compile(r"\\mathbb\s*\{?R\}?|(?:\\text\{)?(?:all )?(?:real numbers|reals)\}?", re.IGNORECASE)
ORDER = re.compile(r"(\\(?:le|ge|ne)(?![A-Za-z])|<|>)")
FLIPPED = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}
MEMBER = re.compile(r"\\?[A-Za-z](?:_\{\w+\})?\s*\\in(?![A-Za-z])\s*(.+)", re.DOTALL)
_BUILDER = re.compile(r"\\\{\s*\\?[A-Za-z]\s*(?:\\in\s*\\mathbb\s*\{?R\}?\s*)?(?:\\mid|\||:)\s*(.+)\\\}", re.DOTALL)
_WITHOUT = re.compile(r"(.+?)\s*(?:\\setminus|\\backslash|(?<=\})\s*-)\s*(\\?\{.+\})", re.DOTALL)
_EXCEPT = re.compile(
    r"^(?:\\text\{)?\s*all real numbers(?: x)?,? (?:except|but)(?: for)?\s*\}?\s*([^\\{}]+|-?\\frac\{\d+\}\{\d+\})$",
    re.IGNORECASE,
)
_REAL_NAME = re.compile(r"^\\?[A-Za-z]\s*\\in\s*\\mathbb\s*\{?R\}?\s*[,:]\s*(?=\\?[A-Za-z]\s*(?:\\|<|>))")

Piece = tuple[str, str, str, str]
"""Opening bracket, ends, closing bracket of an interval; of a finite set its elements as one end."""


def read_intervals(text: str) -> list[Piece] | None:
    r"""Return the intervals that a union, an inequality or an interval consists of; None if it is none of these.

    Example:
        >>> read_intervals("x > 2"), read_intervals(r"(-\infty, 1] \cup (3, 4)")
        ([('(', '2', '\\infty', ')')], [('(', '-\\infty', '1', ']'), ('(', '3', '4', ')')])
        >>> read_intervals(r"x \ne 2"), read_intervals("x + 1")
        ([('(', '-\\infty', '2', ')'), ('(', '2', '\\infty', ')')], None)

    """
    text = _REAL_NAME.sub("", text)
    if member := MEMBER.fullmatch(text):
        text = member[1].strip()
    if builder := _BUILDER.fullmatch(text):
        text = builder[1].strip()
    if without := _WITHOUT.fullmatch(_EXCEPT.sub(r"\\mathbb{R} \\setminus \\{\1\\}", text)):
        left_out = split_list_items(re.sub(r"^\\?\{|\\?\}$", "", without[2]))
        return _exclude_numbers(left_out) if _REALS.fullmatch(without[1].strip()) else None
    pieces = list[Piece]()
    for part in split_outside_brackets(mark_conjunctions(text), [r"\cup", r"\text{or}", r"\text{, or}"]):
        piece = _read_union_part(part)
        if piece is None:
            return None
        pieces += piece
    return pieces


def _read_union_part(text: str) -> list[Piece] | None:
    if _REALS.fullmatch(text):
        return [("(", r"-\infty", r"\infty", ")")]
    both = split_outside_brackets(text, BOTH)
    if len(both) == 2:
        return (
            _intersect_rays(*map(_read_union_part, both))
            if len(_find_compared_names(both[0]) | _find_compared_names(both[1])) == 1
            else None
        )
    if builder := _BUILDER.fullmatch(text):
        text = builder[1].strip()
    if ORDER.search(text):
        return _read_inequality(text)
    brackets = read_brackets(text)
    if brackets is None:
        return None
    opening, inside, closing = brackets
    ends = split_outside_brackets(inside, ",;")
    if opening == r"\{":
        return [(opening, element, "", closing) for element in split_list_items(inside)]
    if len(ends) != 2 or opening not in "([" or closing not in ")]":
        return None
    return [(opening, ends[0].removeprefix("+"), ends[1].removeprefix("+").strip(), closing)]


def _intersect_rays(ours: list[Piece] | None, theirs: list[Piece] | None) -> list[Piece] | None:
    """Return what lies above one number and below another; None where that is not what two inequalities say."""
    if not ours or not theirs or len(ours) + len(theirs) != 2:
        return None
    above, below = (ours[0], theirs[0]) if ours[0][2] == r"\infty" else (theirs[0], ours[0])
    low, high = read_normal_rational(above[1]), read_normal_rational(below[2])
    if (above[2], below[1]) != (r"\infty", r"-\infty") or low is None or high is None or low >= high:
        return None
    return [(above[0], above[1], below[2], below[3])]


def _read_inequality(text: str) -> list[Piece] | None:
    sides = [side.strip() for side in ORDER.split(text)]
    values, signs = sides[::2], sides[1::2]
    if not all(values):
        return None
    if len(signs) == 1:
        low, sign, high = values[0], signs[0], values[1]
        if is_variable(high) and not is_variable(low):
            low, high = high, low
            sign = FLIPPED.get(sign, sign)
        if not is_variable(low):
            return None
        if sign == r"\ne":
            return _exclude_numbers([high])
        if sign in ("<", r"\le"):
            return [("(", r"-\infty", high, "]" if sign == r"\le" else ")")]
        return [("[" if sign == r"\ge" else "(", high, r"\infty", ")")]
    if len(signs) != 2 or not is_variable(values[1]) or {signs[0], signs[1]} & {r"\ne"}:
        return None
    if signs[0] in (">", r"\ge"):
        values, signs = values[::-1], [FLIPPED[sign] for sign in signs[::-1]]
    if any(sign not in ("<", r"\le") for sign in signs):
        return None
    return [("[" if signs[0] == r"\le" else "(", values[0], values[2], "]" if signs[1] == r"\le" else ")")]


def _exclude_numbers(left_out: Sequence[str]) -> list[Piece] | None:
    """Return the reals without some numbers; None if those are no numbers, which have an order."""
    numbers = [read_normal_rational(text) for text in left_out]
    if len(left_out) > 1 and None in numbers:
        return None
    ordered = [text for _, text in sorted(zip(numbers, left_out, strict=True))] if len(left_out) > 1 else left_out
    ends = [r"-\infty", *ordered, r"\infty"]
    return [("(", low, high, ")") for low, high in itertools.pairwise(ends)]


def is_number_range(reference: str) -> bool:
    """Whether a reference is a set of numbers that cannot be taken for a point: ``(1, 2)`` alone can."""
    pieces = read_intervals(reference)
    if pieces is None or all(piece[0] == r"\{" for piece in pieces):
        return False
    if len(pieces) > 1 or read_brackets(reference) is None:
        return True
    opening, low, high, closing = pieces[0]
    return (opening, closing) != ("(", ")") or r"\infty" in low + high


def is_same_number_range(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer consists of the same intervals, in whatever order and notation."""
    ours, theirs = read_intervals(drop_leading_name(answer)), read_intervals(reference)
    if ours is None or theirs is None or len(ours) != len(theirs):
        return False
    our_names, their_names = _find_compared_names(answer), _find_compared_names(reference)
    if len(our_names) > max(1, len(their_names)) or (our_names and their_names and our_names != their_names):
        return False
    left = list(ours)
    for their in theirs:
        place = next((place for place, our in enumerate(left) if _is_same_interval(our, their, compare)), None)
        if place is None:
            return False
        left.pop(place)
    return True


def _find_compared_names(text: str) -> set[str]:
    names = set[str]()
    for part in split_outside_brackets(mark_conjunctions(text), [r"\text{or}", r"\text{, or}", *BOTH]):
        sides = [side.strip() for side in ORDER.split(part)[::2]]
        names |= {side for side in sides if is_variable(side) and side != r"\infty"} if len(sides) > 1 else set()
    return names


def _is_same_interval(ours: Piece, theirs: Piece, compare: AnswerEquality) -> bool:
    if (ours[0], ours[3]) != (theirs[0], theirs[3]):
        return False
    return all(our == their or compare.is_equal(our, their) for our, their in zip(ours[1:3], theirs[1:3], strict=True))
