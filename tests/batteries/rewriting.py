r"""How completions are made of golds: a rewrite is a function of a gold.

It gives a completion, or None where it does not apply; it applies only where nobody can doubt what becomes of the
value. Nearly all state what they write in ``\boxed{}``.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from gold_kinds import GoldCollection, is_formula, is_relation, read_gold_number, read_option_letter, strip_dollars

Rewrite = Callable[[str], str | None]


T = TypeVar("T")


def write_in_box(value: str) -> str:
    """State a value in a box."""
    return rf"\boxed{{{value}}}"


def state_value(before: str, after: str, where: Callable[[str], object] = bool) -> Rewrite:
    """Return the rewrite that states a value between two texts."""
    return lambda gold: f"{before}{value}{after}" if where(value := strip_dollars(gold)) else None


def enclose_value(before: str, after: str, where: Callable[[str], object] = is_formula) -> Rewrite:
    """Return the rewrite that puts something around a value, inside of the box."""
    return state_value(rf"\boxed{{{before}", f"{after}}}", where)


def replace_pattern(
    pattern: str, replacement: str | Callable[[re.Match[str]], str], where: Callable[[str], object] = is_formula
) -> Rewrite:
    """Return the rewrite that replaces what a pattern matches, wherever it does."""

    def rewrite(gold: str) -> str | None:
        value = strip_dollars(gold)
        written = re.sub(pattern, replacement, value) if where(value) else value
        return None if written == value else write_in_box(written)

    return rewrite


def rewrite_if_read(read: Callable[[str], T | None], write: Callable[[T], str | None]) -> Rewrite:
    """Return the rewrite that reads a value of some kind and writes it otherwise."""

    def rewrite(gold: str) -> str | None:
        value = strip_dollars(gold)
        found = read(value)
        written = None if found is None else write(found)
        return None if written is None or written == value else write_in_box(written)

    return rewrite


def is_quotable_in_sentence(value: str) -> bool:
    """Whether a value may stand in a sentence: in one line, without full stops or dollars."""
    return not re.search(r"\n|\.(?:\s|$)|(?<!\\)\$", value)


def is_gold_number(value: str) -> bool:
    """Whether a value is a number."""
    return read_gold_number(value) is not None


def is_dashed_value(value: str) -> bool:
    """Whether a value is a date, a time, a score or a range."""
    return re.fullmatch(r"\d+([-:])\d+(?:\1\d+)?", value) is not None


def is_bare_integer(value: str) -> bool:
    """Whether a value is an integer of digits alone."""
    return re.fullmatch(r"-?\d+", value) is not None


def is_plain_list(found: GoldCollection) -> bool:
    """Whether items stand in a list without brackets, and none of them is a relation."""
    return not found.opened and not any(is_relation(item) or r"\pm" in item for item in found.items)


def write_fraction(number: Fraction) -> str:
    r"""Write a number with ``\frac``."""
    return rf"{'-' * (number < 0)}\frac{{{abs(number.numerator)}}}{{{number.denominator}}}"


def write_finite_decimal(number: Fraction) -> str | None:
    """Write a fraction as a decimal, if it is a short one.

    Example:
        >>> write_finite_decimal(Fraction(-7, 8)), write_finite_decimal(Fraction(1, 3))
        ('-0.875', None)

    """
    for digits in range(1, 8):
        shifted = number * 10**digits
        if number.denominator > 1 and shifted.denominator == 1:
            text = f"{abs(shifted.numerator):0{digits + 1}d}"
            return f"{'-' * (number < 0)}{text[:-digits]}.{text[-digits:]}"
    return None


def choose_other_value(gold: str) -> str:
    """Return a value that a gold is not."""
    value = strip_dollars(gold)
    number = read_gold_number(value)
    if number is not None and number.denominator == 1:
        return str(number - 2 if number == -1 else number + 1)
    letter = read_option_letter(value)
    if letter:
        return "B" if letter != "B" else "D"
    return "9173" if "9173" not in value else "2861"


def read_number_and_base(value: str) -> tuple[str, str] | None:
    """Read a number with the index of its base."""
    found = re.fullmatch(r"([0-9A-F]+)_(?:\{(\d+)\}|(\d))", value)
    return (found[1], found[2] or found[3]) if found else None


def write_number(number: Fraction) -> str:
    """Write a number as an integer, a short decimal or a fraction."""
    if number.denominator == 1:
        return str(number)
    return write_finite_decimal(number) or write_fraction(number)
