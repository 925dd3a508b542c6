"""Completions that answer the number that a gold answers, in another form."""

import re
from collections.abc import Callable
from fractions import Fraction

from gold_kinds import read_gold_number, read_mixed_number, read_percentage, read_scientific_number, strip_dollars
from rewriting import (
    Rewrite,
    enclose_value,
    is_bare_integer,
    is_gold_number,
    read_number_and_base,
    replace_pattern,
    rewrite_if_read,
    write_finite_decimal,
    write_fraction,
    write_in_box,
)

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


_GLYPHS = {Fraction(1, 2): "½", Fraction(1, 4): "¼", Fraction(3, 4): "¾", Fraction(1, 3): "⅓", Fraction(2, 3): "⅔"}


def write_thousands(separator: str) -> Rewrite:
    """Return the rewrite of an integer with something between its thousands."""

    def write(number: Fraction) -> str | None:
        whole = number.denominator == 1 and abs(number) >= 1000
        return f"{number.numerator:,}".replace(",", separator) if whole else None

    return rewrite_if_read(read_gold_number, write)


def write_repeating_decimal(number: Fraction) -> str | None:
    r"""Write a fraction as a decimal that repeats from its first digit on, if it does.

    Example:
        >>> write_repeating_decimal(Fraction(1, 3)), write_repeating_decimal(Fraction(25, 11))
        ('0.\\overline{3}', '2.\\overline{27}')
        >>> write_repeating_decimal(Fraction(1, 6)) is None
        True

    """
    for digits in range(1, 7):
        nines = 10**digits - 1
        if number > 0 and number.denominator > 1 and nines % number.denominator == 0:
            whole, rest = divmod(number, 1)
            return rf"{whole}.\overline{{{int(rest * nines):0{digits}d}}}"
    return None


def make_mixed_number_writer(between: str) -> Callable[[Fraction], str | None]:
    """Return what writes a fraction above one as a mixed number."""

    def write(number: Fraction) -> str | None:
        whole, rest = divmod(abs(number), 1)
        if not whole or not rest:
            return None
        return f"{'-' * (number < 0)}{whole}{between.format(rest.numerator, rest.denominator)}"

    return write


def make_power_of_ten_writer(pattern: str) -> Callable[[Fraction], str | None]:
    """Return what writes a long number with a mantissa and a power of ten."""

    def write(number: Fraction) -> str | None:
        if not number or 1 / Fraction(1000) < abs(number) < 1000:
            return None
        exponent = 0
        while abs(number) / Fraction(10) ** exponent >= 10:
            exponent += 1
        while abs(number) / Fraction(10) ** exponent < 1:
            exponent -= 1
        mantissa = number / Fraction(10) ** exponent
        digits = str(mantissa) if mantissa.denominator == 1 else write_finite_decimal(mantissa)
        raised = str(exponent).translate(_SUPERSCRIPTS)
        return None if digits is None else pattern.format(digits=digits, exponent=exponent, raised=raised)

    return write


def read_plain_or_scientific(value: str) -> Fraction | None:
    """Read a number, with a power of ten or without."""
    return read_scientific_number(value) if read_gold_number(value) is None else read_gold_number(value)


def make_unsigned_writer(pattern: str) -> Callable[[Fraction], str | None]:
    """Return what puts a positive integer or decimal into a pattern."""

    def write(number: Fraction) -> str | None:
        digits = str(number) if number.denominator == 1 else write_finite_decimal(number)
        return None if digits is None or number <= 0 else pattern.format(digits)

    return write


def write_in_millions(number: Fraction) -> str | None:
    """Write millions with the word."""
    return rf"{number / 10**6}\text{{ million}}" if number and (number / 10**6).denominator == 1 else None


def write_unreduced_fraction(number: Fraction) -> str | None:
    """Write a fraction that could be reduced."""
    if number.denominator == 1:
        return None
    return rf"{'-' * (number < 0)}\frac{{{3 * abs(number.numerator)}}}{{{3 * number.denominator}}}"


def write_sign_in_numerator(number: Fraction) -> str | None:
    """Write the sign of a fraction in its numerator."""
    return rf"\frac{{{number.numerator}}}{{{number.denominator}}}" if number < 0 and number.denominator > 1 else None


def write_percentage_as_share(number: Fraction) -> str | None:
    """Write a percentage as a share."""
    share = number / 100
    return str(share) if share.denominator == 1 else write_finite_decimal(share)


def read_bracketed_unit(value: str) -> tuple[str, str] | None:
    """Read a number with a unit in brackets."""
    found = re.fullmatch(r"(-?[\d.,/]+) \(([a-zA-Z ]+)\)", value)
    return (found[1], found[2]) if found and is_gold_number(found[1]) else None


def read_dollar_amount(value: str) -> Fraction | None:
    """Read an amount of dollars."""
    found = re.fullmatch(r"\\\$\s*(\S+)", value)
    return read_gold_number(found[1]) if found else None


def read_degrees(value: str) -> str | None:
    """Read a number of degrees."""
    found = re.fullmatch(r"(-?[\d.]+)\s*\^\s*(?:\\circ|\{\s*\\circ\s*\})", value)
    return found[1] if found else None


def merge_surd(gold: str) -> str | None:
    """Take the factor of a square root under it."""
    surd = re.fullmatch(r"(\d+)\s*\\sqrt\{(\d+)\}", strip_dollars(gold))
    return write_in_box(rf"\sqrt{{{int(surd[1]) ** 2 * int(surd[2])}}}") if surd and int(surd[1]) else None


def split_surd(gold: str) -> str | None:
    """Write the factor of a square root behind it."""
    surd = re.fullmatch(r"(\d+)\s*(\\sqrt\{\w+\})", strip_dollars(gold))
    return write_in_box(rf"{surd[2]} \cdot {surd[1]}") if surd else None


NUMBERS: dict[str, Rewrite] = {
    "thousands by commas": write_thousands(","),
    "thousands by commas in braces": write_thousands("{,}"),
    "thousands by thin spaces": write_thousands(r"\,"),
    "thousands by commas and negative spaces": write_thousands(r",\!"),
    "no separator of thousands": rewrite_if_read(
        lambda value: value if is_gold_number(value) and "," in value else None, lambda value: value.replace(",", "")
    ),
    "trailing zero": rewrite_if_read(
        lambda value: value if is_bare_integer(value) else None, lambda value: f"{value}.0"
    ),
    "trailing zero of a decimal": rewrite_if_read(
        lambda value: value if re.fullmatch(r"-?\d+\.\d+", value) else None, lambda value: f"{value}0"
    ),
    "leading zero": replace_pattern(r"^(-?)\.(\d+)$", r"\g<1>0.\2"),
    "leading plus": rewrite_if_read(read_gold_number, make_unsigned_writer("+{}")),
    "decimal for a fraction": rewrite_if_read(
        lambda value: None if "." in value else read_gold_number(value), write_finite_decimal
    ),
    "fraction for a decimal": rewrite_if_read(
        lambda value: read_gold_number(value) if "." in value else None,
        lambda number: write_fraction(number) if number.denominator > 1 else None,
    ),
    "repeating decimal": rewrite_if_read(read_gold_number, write_repeating_decimal),
    "fraction not reduced": rewrite_if_read(read_gold_number, write_unreduced_fraction),
    "sign in the numerator": rewrite_if_read(read_gold_number, write_sign_in_numerator),
    "glyph of a fraction": rewrite_if_read(read_gold_number, _GLYPHS.get),
    "mixed number": rewrite_if_read(read_gold_number, make_mixed_number_writer(r"\frac{{{}}}{{{}}}")),
    "mixed number in plain text": rewrite_if_read(read_gold_number, make_mixed_number_writer(" {}/{}")),
    "fraction for a mixed number": rewrite_if_read(read_mixed_number, write_fraction),
    "power of ten": rewrite_if_read(
        read_plain_or_scientific, make_power_of_ten_writer(r"{digits} \times 10^{{{exponent}}}")
    ),
    "power of ten by a dot": rewrite_if_read(
        read_plain_or_scientific, make_power_of_ten_writer(r"{digits}\cdot 10^{{{exponent}}}")
    ),
    "power of ten by e": rewrite_if_read(read_plain_or_scientific, make_power_of_ten_writer("{digits}e{exponent}")),
    "power of ten in unicode": rewrite_if_read(
        read_plain_or_scientific, make_power_of_ten_writer("{digits} \N{MULTIPLICATION SIGN} 10{raised}")
    ),
    "power of ten with a unit": rewrite_if_read(
        read_scientific_number, make_power_of_ten_writer(r"{digits} \times 10^{{{exponent}}}\text{{ J}}")
    ),
    "million": rewrite_if_read(read_gold_number, write_in_millions),
    "unit in a text command": enclose_value("", r"\text{ cm}", is_gold_number),
    "unit in upright letters": enclose_value("", r"\,\mathrm{cm}", is_gold_number),
    "unit with a non-breaking space": enclose_value("", r" \mathrm{~kg}", is_gold_number),
    "unit with a square": enclose_value("", r"\text{ m}^2", is_gold_number),
    "unit as a word": enclose_value("", " apples", is_gold_number),
    "dollars": rewrite_if_read(read_gold_number, make_unsigned_writer(r"\${}")),
    "word for dollars": rewrite_if_read(read_dollar_amount, make_unsigned_writer("{} dollars")),
    "amount without its sign": rewrite_if_read(read_dollar_amount, make_unsigned_writer("{}")),
    "unescaped sign of per cent": rewrite_if_read(read_percentage, make_unsigned_writer("{}%")),
    "space before the sign of per cent": rewrite_if_read(read_percentage, make_unsigned_writer(r"{}\,\%")),
    "word for per cent": rewrite_if_read(read_percentage, make_unsigned_writer(r"{}\text{{ percent}}")),
    "percentage without its sign": rewrite_if_read(read_percentage, make_unsigned_writer("{}")),
    "share for a percentage": rewrite_if_read(read_percentage, write_percentage_as_share),
    "word for degrees": rewrite_if_read(read_degrees, lambda digits: rf"{digits}\text{{ degrees}}"),
    "degrees without their sign": rewrite_if_read(read_degrees, str),
    "number without its unit": rewrite_if_read(read_bracketed_unit, lambda found: found[0]),
    "unit out of its brackets": rewrite_if_read(read_bracketed_unit, " ".join),
    "unit in a text command for one in brackets": rewrite_if_read(
        read_bracketed_unit, lambda found: rf"{found[0]}\text{{ {found[1]}}}"
    ),
    "base in braces": rewrite_if_read(read_number_and_base, lambda found: f"{found[0]}_{{{found[1]}}}"),
    "base without braces": rewrite_if_read(
        read_number_and_base, lambda found: f"{found[0]}_{found[1]}" if len(found[1]) == 1 else None
    ),
    "base of a number in brackets": rewrite_if_read(read_number_and_base, lambda found: f"({found[0]})_{{{found[1]}}}"),
    "factor under the root": merge_surd,
    "factor behind the root": split_surd,
}
