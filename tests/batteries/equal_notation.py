"""Completions that answer what a gold answers, in other LaTeX."""

import re
from collections.abc import Callable

from gold_kinds import is_formula, is_scalar, is_unevaluated_scalar, read_gold_number, read_option_letter, strip_dollars
from rewriting import (
    Rewrite,
    enclose_value,
    is_bare_integer,
    is_dashed_value,
    is_gold_number,
    replace_pattern,
    rewrite_if_read,
    write_in_box,
)

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


_SIGNS = {
    r"\\infty(?![a-z])": "∞",
    r"\\pi(?![a-z])\s*": "π",
    r"\\times(?![a-z])": "\N{MULTIPLICATION SIGN}",
    r"\\cdot(?![a-z])": "·",
    r"\\leq?(?![a-z])": "≤",
    r"\\geq?(?![a-z])": "≥",
    r"\\cup(?![a-z])": "\N{UNION}",
    r"\\theta(?![a-z])": "θ",
    r"\^\s*(?:\\circ|\{\s*\\circ\s*\})": "°",
}


def write_unicode_signs(gold: str) -> str | None:
    """Write infinities, pi, signs of order and the like in Unicode."""
    value = strip_dollars(gold)
    written = value
    for pattern, sign in _SIGNS.items():
        written = re.sub(pattern, sign, written)
    return None if written == value or not is_formula(value) else write_in_box(written)


def lay_out_matrix(gold: str) -> str | None:
    """Write every row of a matrix in a line of its own."""
    value = strip_dollars(gold)
    if r"\begin" not in value or "\n" in value:
        return None
    written = re.sub(r"\s*\\\\\s*", r" \\\\" + "\n", value)
    written = re.sub(r"(\\begin\{\w+\}(?:\{[lcr|]+\})?)\s*", r"\1" + "\n", written)
    return write_in_box(re.sub(r"\s*(\\end\{)", "\n" + r"\1", written))


def write_matrix_as_array(gold: str) -> str | None:
    r"""Write a matrix with ``array`` and brackets."""
    found = re.fullmatch(r"\\begin\{[pb]matrix\}(.*)\\end\{[pb]matrix\}", strip_dollars(gold), re.DOTALL)
    if found is None or r"\begin" in found[1]:
        return None
    columns = "c" * (found[1].split(r"\\")[0].count("&") + 1)
    return write_in_box(rf"\left[\begin{{array}}{{{columns}}}{found[1]}\end{{array}}\right]")


def read_complex_number(value: str) -> str | None:
    """Return a value in which i is the imaginary unit."""
    found = is_scalar(value) and re.fullmatch(r"[-+\d\s{}/.]*(?:\\sqrt\{\d+\}|\\frac|[-+\d\s{}/.])*i[-+\d\s{}]*", value)
    return value if found else None


def is_formula_without(pattern: str) -> Callable[[str], bool]:
    """Return the test whether a value is a formula in which a pattern does not occur."""
    return lambda value: is_formula(value) and not re.search(pattern, value)


def space_out_signs(space: str) -> Rewrite:
    """Return the rewrite that puts a space around signs of operation and behind commas."""

    def rewrite(gold: str) -> str | None:
        value = strip_dollars(gold)
        if not is_formula(value) or re.search(r"^[^a-zA-Z]+$|\de-|\{,\}|\d,\d{3}|\\begin", value):
            return None
        written = re.sub(r"(?<!\\),\s*", f",{space}", value)
        written = re.sub(r"(?<=[\w)}])\s*([-+=])\s*(?=[\w(\\])", rf"{space}\1{space}", written)
        return None if written == value else write_in_box(written)

    return rewrite


def size_brackets(gold: str) -> str | None:
    r"""Put ``\left`` and ``\right`` before brackets."""
    value = strip_dollars(gold)
    if not is_formula(value) or r"\left" in value or re.search(r"\\[bB]ig", value):
        return None
    if sum(value.count(bracket) for bracket in "([") != sum(value.count(bracket) for bracket in ")]"):
        return None
    written = re.sub(r"\\\{|(?<!\\)[(]|(?<![\\t])\[", lambda opened: rf"\left{opened[0]}", value)
    written = re.sub(r"\\\}|(?<!\\)[)]|(?<!\\)\]", lambda closed: rf"\right{closed[0]}", written)
    return None if written == value or r"\sqrt[" in value else write_in_box(written)


def write_slash_fraction(gold: str) -> str | None:
    r"""Write the one ``\frac`` of a value with a slash and brackets."""
    value = strip_dollars(gold)
    found = re.fullmatch(r"(-?)\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", value)
    return write_in_box(f"{found[1]}({found[2]})/({found[3]})") if found and is_scalar(value) else None


NOTATION: dict[str, Rewrite] = {
    r"\dfrac": replace_pattern(r"\\t?frac(?![a-z])", r"\\dfrac"),
    r"\tfrac": replace_pattern(r"\\d?frac(?![a-z])", r"\\tfrac"),
    r"\frac without braces": replace_pattern(r"\\frac\{(\d)\}\{(\d)\}", r"\\frac\1\2"),
    "fraction with a slash": rewrite_if_read(
        read_gold_number, lambda number: None if number.denominator == 1 else f"{number.numerator}/{number.denominator}"
    ),
    "quotient with a slash and brackets": write_slash_fraction,
    r"\left and \right": size_brackets,
    r"no \left and \right": replace_pattern(
        r"\\(?:left|right)(?![a-z])\s*", "", is_formula_without(r"\\(?:left|right)\s*[.|]")
    ),
    "no spaces": replace_pattern(
        r"(?<![\\A-Za-z])[ ]+|(?<!\\)[ ]+(?![A-Za-z0-9])", "", is_formula_without(r"\d\s+[\d\\]")
    ),
    "spaces": space_out_signs(" "),
    r"thin spaces (\,)": space_out_signs(r"\\,"),
    r"medium spaces (\;)": space_out_signs(r"\\;"),
    "non-breaking spaces (~)": space_out_signs("~"),
    r"negative spaces (\!)": replace_pattern(r"(?=\\left|(?<!left)(?<!\^)[(\[])", r"\\!"),
    "line ends behind commas": replace_pattern(r",\s+", ",\n"),
    "matrix over several lines": lay_out_matrix,
    "other brackets of a matrix": replace_pattern(
        r"\{(p|b)matrix\}",
        lambda found: f"{{{'b' if found[1] == 'p' else 'p'}matrix}}",
    ),
    "matrix as an array": write_matrix_as_array,
    "bold": enclose_value(r"\mathbf{", "}"),
    "bold symbol": enclose_value(r"\boldsymbol{", "}"),
    "old bold": enclose_value(r"{\bf ", "}", lambda value: is_gold_number(value) or read_option_letter(value)),
    "underlined": enclose_value(r"\underline{", "}"),
    "displayed style": enclose_value(r"\displaystyle ", ""),
    "braces around": enclose_value("{", "}"),
    "number in a text command": enclose_value(r"\text{", "}", is_bare_integer),
    "number in bold text": enclose_value(r"\textbf{", "}", is_bare_integer),
    "dollars in the box": enclose_value("$", "$"),
    "inline brackets in the box": enclose_value(r"\(", r"\)"),
    "full stop in the box": enclose_value("", "."),
    r"\times for \cdot": replace_pattern(r"\\cdot(?![a-z])", r"\\times"),
    r"\cdot for \times": replace_pattern(r"\\times(?![a-z])", r"\\cdot"),
    "sign of multiplication": replace_pattern(
        r"(?<![\\A-Za-z_^\d])(\d+)\s*(?=[a-zA-Z](?![a-zA-Z])|\\(?:sqrt|pi))", r"\1 \\cdot ", is_unevaluated_scalar
    ),
    "braces around exponents": replace_pattern(r"\^(\w)", r"^{\1}"),
    "no braces around exponents": replace_pattern(r"\^\{(\w)\}", r"^\1"),
    r"\sqrt without braces": replace_pattern(r"\\sqrt\{(\d)\}", r"\\sqrt\1"),
    "root as a power": replace_pattern(r"\\sqrt\{(\d+|[a-z])\}", r"(\1)^{1/2}", is_scalar),
    r"\leq and \geq": replace_pattern(r"\\([lg])e(?![a-z])", r"\\\1eq"),
    r"\le and \ge": replace_pattern(r"\\([lg])eq(?![a-z])", r"\\\1e"),
    r"\leqslant and \geqslant": replace_pattern(r"\\([lg])eq?(?![a-z])", r"\\\1eqslant"),
    r"\varnothing": replace_pattern(r"\\emptyset", r"\\varnothing"),
    "empty braces": replace_pattern(r"\\emptyset|\\varnothing", r"\\{\\}"),
    r"+\infty": replace_pattern(r"(?<![-+])(?<![-+] )\\infty", r"+\\infty"),
    r"braces of sets by \lbrace": replace_pattern(r"\\([{}])", lambda found: "\\" + "lr"[found[1] == "}"] + "brace "),
    "unicode roots": replace_pattern(r"\\sqrt\{(\d+|[a-z])\}(?![\da-z])", r"√\1"),
    "unicode exponents": replace_pattern(
        r"(?<=[\da-zA-Z)])\^(?:\{(-?\d+)\}|(\d))", lambda power: (power[1] or power[2]).translate(_SUPERSCRIPTS)
    ),
    "unicode signs": write_unicode_signs,
    "unicode minus": replace_pattern("-", "\N{MINUS SIGN}", lambda value: is_formula(value) and r"\text" not in value),
    "dash for a minus": replace_pattern("^-", "\N{EN DASH}", is_gold_number),
    "upright e": replace_pattern(r"(?<![\\a-z])e(?=\^)", r"\\mathrm{e}"),
    "upright pi": replace_pattern(r"\\pi(?![a-z])", r"\\mathrm{\\pi}", is_scalar),
    "numerator behind the fraction": replace_pattern(
        r"^\\frac\{(\\?[a-z]+(?:\{\w+\})?)\}\{(\d+)\}$", r"\\frac{1}{\2} \1", is_scalar
    ),
    "ratio with spaces": replace_pattern(r"^(\d+):(\d+)$", r"\1 : \2"),
    "date or score in a text command": enclose_value(r"\text{", "}", is_dashed_value),
    "upright i": rewrite_if_read(read_complex_number, lambda value: re.sub(r"(?<![\\a-z])i", r"\\mathrm{i}", value)),
}
"""The same characters' worth of mathematics in other LaTeX."""
