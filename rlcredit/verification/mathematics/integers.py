"""Integers by their remainders and by their digits; numbers by the integers of their continued fraction."""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.expressions import is_finished_expression
from rlcredit.verification.mathematics.named_values import drop_leading_name
from rlcredit.verification.mathematics.ranges import read_linear
from rlcredit.verification.mathematics.relations import INTEGER_DOMAIN, split_quantifier
from rlcredit.verification.mathematics.structure import (
    LIST_MARKS,
    expand_plus_minus,
    has_matching_items,
    mark_conjunctions,
    read_brackets,
    split_outside_brackets,
)

_MODULUS = re.compile(
    r"\s*\(?\s*(?:\\text\{\s*\(?\s*)?\\?(?<![A-Za-z])(?:pmod|bmod|modulo|mod)(?![A-Za-z])\s*\}?\s*"
    r"(?:\{([^{}]+)\}|\(([^()]+)\)|(\w+))\s*(?:\)|\\text\{\s*\)\s*\})?\s*$"
)
_WHOLE = re.compile(r"-?\d{1,20}")
_LONGEST_CYCLE = 100_000


class Residue(NamedTuple):
    """What is congruent (nothing if that is not said), to what, and the modulus."""

    name: str
    remainder: str
    modulus: str


def _read_residues(text: str) -> list[Residue] | None:
    r"""Return the congruences in ``x \equiv 1, 5 \pmod{6}`` or ``x = 6k \pm 1``; None if a text is no congruence."""
    residues, modulus = list[Residue](), ""
    text, _, domain = split_quantifier(text)
    if domain not in ("", INTEGER_DOMAIN):
        return None
    parts = split_outside_brackets(mark_conjunctions(text), LIST_MARKS)
    for part in reversed(parts):
        match = _MODULUS.search(part)
        modulus = next(filter(None, match.groups())).strip() if match else modulus
        sides = [side.strip() for side in re.split(r"\\equiv(?![A-Za-z])|=", part[: match.start()] if match else part)]
        for value in expand_plus_minus(sides[-1]):
            residue = Residue("".join(sides[:-1]), value, modulus) if modulus else _read_progression(sides, value)
            if residue is None or len(sides) > 2 or not is_finished_expression(residue.remainder):
                return None
            residues.append(residue)
    names = {residue.name for residue in residues if residue.name}
    return [residue._replace(name=next(iter(names), "")) for residue in residues] if len(names) < 2 else None


def _read_progression(sides: Sequence[str], value: str) -> Residue | None:
    """Return the congruence that ``7k + 3`` stands for."""
    linear = read_linear(value)
    if linear is None or not linear[2] or linear[2] == sides[0] or linear[0].denominator * linear[1].denominator > 1:
        return None
    return Residue("".join(sides[:-1]), str(linear[1]), str(abs(linear[0])))


def is_congruence(reference: str) -> bool:
    """Whether a reference is a residue with its modulus, several, or ``7k + 3`` for any integer ``k``."""
    is_stated = _MODULUS.search(reference) is not None or split_quantifier(reference)[2] == INTEGER_DOMAIN
    return is_stated and _read_residues(reference) is not None


def is_same_congruence(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer allows the same integers."""
    ours, theirs = _read_residues(answer), _read_residues(reference)
    if (
        not ours
        or not theirs
        or (ours[0].name and theirs[0].name and not compare.is_equal(ours[0].name, theirs[0].name))
    ):
        return False
    cycles = [_list_remainders(residues, math.lcm(*map(_read_modulus, ours + theirs))) for residues in (ours, theirs)]
    if all(cycles):
        return cycles[0] == cycles[1]
    return has_matching_items(ours, theirs, lambda our, their: all(map(compare.is_equal, our[1:], their[1:])))


def _read_modulus(residue: Residue) -> int:
    """Return the modulus; 0 where it or the remainder is no integer."""
    return int(residue.modulus) if all(map(_WHOLE.fullmatch, residue[1:])) else 0


def _list_remainders(residues: Sequence[Residue], cycle: int) -> set[int]:
    """Return the remainders that congruences allow by a multiple of their moduli; none if that is too long."""
    if not 0 < cycle <= _LONGEST_CYCLE:
        return set()
    return {
        remainder
        for residue in residues
        for remainder in range(int(residue.remainder) % int(residue.modulus), cycle, abs(int(residue.modulus)))
    }


_BASES = {
    **{
        word: str(base)
        for base, word in enumerate(["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], start=2)
    },
    **{"eleven": "11", "twelve": "12", "sixteen": "16", "binary": "2", "octal": "8", "hexadecimal": "16", "hex": "16"},
    **{"0b": "2", "0o": "8", "0x": "16"},
}
_DIGITS = (
    r"(?P<sign>-?)\s*(?P<digits>[0-9][0-9A-Fa-f]*(?: [0-9A-Fa-f]+)*(?:\.[0-9A-Fa-f]+)?"
    r"|\.[0-9A-Fa-f]+|[A-Fa-f]{2,}(?=[\W_]*(?:(?:in )?base\W*)?(?:16|hex)))"
)
_BASED = re.compile(rf"{_DIGITS}\s*(?:_\s*(?:base\s*-?)?|(?:in )?base\s*-?)\s*(?P<base>\w+)")
_NAMED_BASE = re.compile(rf"{_DIGITS} (?:in )?(?P<base>binary|octal|hexadecimal|hex)")
_PREFIXED = re.compile(r"(?P<sign>-?)(?P<base>0[box])(?P<digits>[0-9A-Fa-f]+)")


def _read_based_number(text: str) -> tuple[str, str, str] | None:
    """Return sign, digits and base of ``1011_{2}``, ``1011 (base two)``, ``0b1011``; None if it has no base."""
    text = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text)
    plain = " ".join(re.sub(r"[(){}]", " ", text).split())
    match = _BASED.fullmatch(plain) or _NAMED_BASE.fullmatch(plain) or _PREFIXED.fullmatch(plain)
    if match is None:
        return None
    whole, _, fraction = match["digits"].replace(" ", "").upper().partition(".")
    base = _BASES.get(match["base"].lower(), match["base"])
    is_known = len(base) == 1 or base.isdigit()
    return (match["sign"], f"{whole.lstrip('0')}.{fraction.rstrip('0')}", base) if is_known else None


def is_based_number(reference: str) -> bool:
    """Whether a reference is a number with its base: ``1011_{2}``."""
    return _read_based_number(reference) is not None


def has_same_digits(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same digits and names the same base."""
    return _read_based_number(drop_leading_name(answer)) == _read_based_number(reference)


_PERIOD = re.compile(r"\\(?:overline|bar|dot)\s*\{([^{}]*)\}")
_NESTED = re.compile(r"(?P<whole>-?\d+)\s*\+\s*\\frac\{\s*1\s*\}\{(?P<rest>.*)\}", re.DOTALL)


def _read_continued_fraction(text: str) -> tuple[list[str], list[str]] | None:
    r"""Return the terms of ``[1; 2, \overline{3}]`` before its period, and the period; None if a text is none.

    Both are as short as they can be.
    """
    brackets = read_brackets(text)
    if brackets is None or brackets[::2] != ("[", "]") or ";" not in brackets[1]:
        return _read_nested_fraction(text)
    parts = split_outside_brackets(brackets[1], ",;")
    goes_on, period = parts[-1] == r"\ldots", list[str]()
    if match := _PERIOD.fullmatch(parts[-1]):
        period = split_outside_brackets(match[1], ",;")
    terms = parts[:-1] if goes_on or match else parts
    if goes_on:
        terms, period = _find_period(terms)
    if not all(map(_WHOLE.fullmatch, terms + period)) or (goes_on and not period):
        return None
    return _shorten_terms(terms, period)


def _read_nested_fraction(text: str) -> tuple[list[str], list[str]] | None:
    terms = list[str]()
    while match := _NESTED.fullmatch(text):
        terms.append(match["whole"])
        text = match["rest"].strip()
    return _shorten_terms([*terms, text], []) if terms and _WHOLE.fullmatch(text) else None


def _find_period(terms: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the terms before a period that comes twice at least, and the period; it is empty if there is none."""
    for size in range(1, len(terms) // 2 + 1):
        for start in range(len(terms) - max(2 * size, 3) + 1):
            tail = terms[start:]
            if all(term == tail[place % size] for place, term in enumerate(tail)):
                return list(terms[:start]), list(tail[:size])
    return list(terms), []


def _shorten_terms(terms: list[str], period: list[str]) -> tuple[list[str], list[str]]:
    if not period and len(terms) > 1 and terms[-1] == "1":
        terms = [*terms[:-2], str(int(terms[-2]) + 1)]
    sizes = range(1, len(period) + 1)
    period = next((period[:size] for size in sizes if period == period[:size] * (len(period) // size)), [])
    while period and terms and terms[-1] == period[-1]:
        terms, period = terms[:-1], [period[-1], *period[:-1]]
    return terms, period


def is_continued_fraction(reference: str) -> bool:
    r"""Whether a reference is a continued fraction in brackets: ``[1; 2, \overline{3}]``."""
    return reference.startswith("[") and _read_continued_fraction(reference) is not None


def is_same_continued_fraction(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer is the same continued fraction, in brackets or written out."""
    return _read_continued_fraction(drop_leading_name(answer)) == _read_continued_fraction(reference)
