"""Rational numbers, exactly."""

import re
from fractions import Fraction

from rlcredit.verification.mathematics.notation import write_normal_form

_DECIMAL = r"(?:\d+\.?\d*|\.\d+)"
_NUMBER = re.compile(rf"([+-]?)\s*({_DECIMAL})(?:[eE]([+-]?\d{{1,3}}))?")
_FRACTION = re.compile(rf"([+-]?)\s*\\frac\{{\s*([+-]?{_DECIMAL})\s*\}}\{{\s*([+-]?{_DECIMAL})\s*\}}")
_SLASHED = re.compile(rf"([+-]?)\s*({_DECIMAL})\s*/\s*({_DECIMAL})")
_MIXED = re.compile(r"([+-]?)\s*(\d+)\s*(?:\\frac\{\s*(\d+)\s*\}\{\s*(\d+)\s*\}|(?:\s| and )(\d+)\s*/\s*(\d+))")
_POWER_OF_TEN = re.compile(
    rf"([+-]?)\s*(?:({_DECIMAL})\s*(?:\\times|\\cdot|x)\s*)?10\s*\^\s*\{{?\s*([+-]?\d{{1,3}})\s*\}}?"
)
_LONGEST_NUMBER = 200
"""Characters; what is longer is a loop of the policy, and Python refuses to read integers of thousands of digits."""


def read_rational(text: str) -> Fraction | None:
    r"""Read an integer, decimal, fraction or mixed number exactly, in scientific notation too; None if it is none.

    Args:
        text: Number in whatever notation people use.

    Example:
        >>> [str(read_rational(text)) for text in ("1,000", "2/4", "5%", r"\frac{1}{20}", "1 1/2", r"0.\overline{3}")]
        ['1000', '1/2', '1/20', '1/20', '3/2', '1/3']
        >>> [str(read_rational(text)) for text in ("1e-05", r"1.0 \times 10^{-5}", "x", "1/0")]
        ['1/100000', '1/100000', 'None', 'None']

    """
    if len(text) > _LONGEST_NUMBER:
        return None
    plain = _NUMBER.fullmatch(text)
    return _convert_plain_number(plain) if plain else read_normal_rational(write_normal_form(text))


def read_normal_rational(text: str) -> Fraction | None:
    """Read a number that is in normal form; None if it is none."""
    if len(text) > _LONGEST_NUMBER or not re.search(r"\d", text):
        return None
    if text.endswith("%"):
        value = read_normal_rational(text.removesuffix("%").strip())
        return None if value is None else value / 100
    if plain := _NUMBER.fullmatch(text):
        return _convert_plain_number(plain)
    if power := _POWER_OF_TEN.fullmatch(text):
        return _apply_sign(power[1], Fraction(power[2] or 1) * Fraction(10) ** int(power[3]))
    if fraction := _FRACTION.fullmatch(text) or _SLASHED.fullmatch(text):
        bottom = Fraction(fraction[3])
        return _apply_sign(fraction[1], Fraction(fraction[2]) / bottom) if bottom else None
    if mixed_number := _MIXED.fullmatch(text):
        top, bottom = int(mixed_number[3] or mixed_number[5]), int(mixed_number[4] or mixed_number[6])
        return _apply_sign(mixed_number[1], int(mixed_number[2]) + Fraction(top, bottom)) if bottom else None
    return None


def _convert_plain_number(plain: re.Match[str]) -> Fraction:
    return _apply_sign(plain[1], Fraction(plain[2]) * Fraction(10) ** int(plain[3] or 0))


def _apply_sign(sign: str, value: Fraction) -> Fraction:
    return -value if sign == "-" else value


def is_within_tolerance(value: Fraction, target: Fraction, tolerance: float = 0.0) -> bool:
    """Whether a value lies within a relative tolerance of another; 0 asks for equality.

    Example:
        >>> is_within_tolerance(Fraction(99), Fraction(100)), is_within_tolerance(Fraction(99), Fraction(100), 0.01)
        (False, True)

    """
    return value == target or abs(value - target) <= Fraction(tolerance) * abs(target)
