r"""Completions that answer what a gold answers, written otherwise.

A rewrite is a function of a gold; it gives a completion, or None where it does not apply. It applies only where nobody
can doubt that the value stays. How the answer is stated is a rewrite too: nearly all others state it in ``\boxed{}``.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from gold_kinds import (
    Collection,
    bare_value,
    is_formula,
    is_relation,
    is_scalar,
    read_collection,
    read_letter,
    read_mixed,
    read_number,
    read_percentage,
    read_scientific,
    read_text,
    split_items,
)

Rewrite = Callable[[str], str | None]
T = TypeVar("T")

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_GLYPHS = {Fraction(1, 2): "½", Fraction(1, 4): "¼", Fraction(3, 4): "¾", Fraction(1, 3): "⅓", Fraction(2, 3): "⅔"}
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


def in_box(value: str) -> str:
    """State a value in a box."""
    return rf"\boxed{{{value}}}"


def state_value(before: str, after: str, where: Callable[[str], object] = bool) -> Rewrite:
    """Return the rewrite that states a value between two texts."""
    return lambda gold: f"{before}{value}{after}" if where(value := bare_value(gold)) else None


def enclose_value(before: str, after: str, where: Callable[[str], object] = is_formula) -> Rewrite:
    """Return the rewrite that puts something around a value, inside of the box."""
    return state_value(rf"\boxed{{{before}", f"{after}}}", where)


def replace_pattern(pattern: str, replacement: str, where: Callable[[str], object] = is_formula) -> Rewrite:
    """Return the rewrite that replaces what a pattern matches, wherever it does."""

    def rewrite(gold: str) -> str | None:
        value = bare_value(gold)
        written = re.sub(pattern, replacement, value) if where(value) else value
        return None if written == value else in_box(written)

    return rewrite


def rewrite_read(read: Callable[[str], T | None], write: Callable[[T], str | None]) -> Rewrite:
    """Return the rewrite that reads a value of some kind and writes it otherwise."""

    def rewrite(gold: str) -> str | None:
        value = bare_value(gold)
        found = read(value)
        written = None if found is None else write(found)
        return None if written is None or written == value else in_box(written)

    return rewrite


def is_sentence(value: str) -> bool:
    """Whether a value may stand in a sentence: in one line, without full stops or dollars."""
    return not re.search(r"\n|\.(?:\s|$)|(?<!\\)\$", value)


def is_number(value: str) -> bool:
    """Whether a value is a number."""
    return read_number(value) is not None


def is_bare_integer(value: str) -> bool:
    """Whether a value is an integer of digits alone."""
    return re.fullmatch(r"-?\d+", value) is not None


def write_thousands(separator: str) -> Rewrite:
    """Return the rewrite of an integer with something between its thousands."""

    def write(number: Fraction) -> str | None:
        whole = number.denominator == 1 and abs(number) >= 1000
        return f"{number.numerator:,}".replace(",", separator) if whole else None

    return rewrite_read(read_number, write)


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


def write_period(number: Fraction) -> str | None:
    r"""Write a fraction as a decimal that repeats from its first digit on, if it does.

    Example:
        >>> write_period(Fraction(1, 3)), write_period(Fraction(25, 11)), write_period(Fraction(1, 6))
        ('0.\\overline{3}', '2.\\overline{27}', None)

    """
    for digits in range(1, 7):
        nines = 10**digits - 1
        if number > 0 and number.denominator > 1 and nines % number.denominator == 0:
            whole, rest = divmod(number, 1)
            return rf"{whole}.\overline{{{int(rest * nines):0{digits}d}}}"
    return None


def write_mixed(between: str) -> Callable[[Fraction], str | None]:
    """Return what writes a fraction above one as a mixed number."""

    def write(number: Fraction) -> str | None:
        whole, rest = divmod(abs(number), 1)
        if not whole or not rest:
            return None
        return f"{'-' * (number < 0)}{whole}{between.format(rest.numerator, rest.denominator)}"

    return write


def write_power(pattern: str) -> Callable[[Fraction], str | None]:
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


def read_long(value: str) -> Fraction | None:
    """Read a number, with a power of ten or without."""
    return read_scientific(value) if read_number(value) is None else read_number(value)


def write_unsigned(pattern: str) -> Callable[[Fraction], str | None]:
    """Return what puts a positive integer or decimal into a pattern."""

    def write(number: Fraction) -> str | None:
        digits = str(number) if number.denominator == 1 else write_finite_decimal(number)
        return None if digits is None or number <= 0 else pattern.format(digits)

    return write


def write_million(number: Fraction) -> str | None:
    """Write millions with the word."""
    return rf"{number / 10**6}\text{{ million}}" if number and (number / 10**6).denominator == 1 else None


def write_repeated(number: Fraction) -> str | None:
    """Write a fraction that could be reduced."""
    if number.denominator == 1:
        return None
    return rf"{'-' * (number < 0)}\frac{{{3 * abs(number.numerator)}}}{{{3 * number.denominator}}}"


def write_top_sign(number: Fraction) -> str | None:
    """Write the sign of a fraction in its numerator."""
    return rf"\frac{{{number.numerator}}}{{{number.denominator}}}" if number < 0 and number.denominator > 1 else None


def write_percent_decimal(number: Fraction) -> str | None:
    """Write a percentage as a share."""
    share = number / 100
    return str(share) if share.denominator == 1 else write_finite_decimal(share)


def permute(wanted: Callable[[Collection], bool]) -> Rewrite:
    """Return the rewrite that reverses items whose order means nothing."""

    def rewrite(gold: str) -> str | None:
        found = read_collection(bare_value(gold))
        if found is None or not wanted(found) or len(found.items) < 2 or found.items[::-1] == found.items:
            return None
        return in_box(str(found._replace(items=found.items[::-1])))

    return rewrite


def is_plain_list(found: Collection) -> bool:
    """Whether items stand in a list without brackets, and none of them is a relation."""
    return not found.opened and not any(is_relation(item) or r"\pm" in item for item in found.items)


def join_list(joint: str) -> Rewrite:
    """Return the rewrite that says a word between the last two items of a list."""

    def rewrite(gold: str) -> str | None:
        found = read_collection(bare_value(gold))
        if found is None or not is_plain_list(found):
            return None
        return in_box(f"{', '.join(found.items[:-1])}{joint}{found.items[-1]}")

    return rewrite


def name_items(gold: str) -> str | None:
    """Name every value of a list: ``x = 1, x = 2``."""
    found = read_collection(bare_value(gold))
    if found is None or not is_plain_list(found) or not all(map(is_scalar, found.items)):
        return None
    name = unused_name(bare_value(gold))
    return in_box(", ".join(f"{name} = {item}" for item in found.items))


def unused_name(value: str) -> str:
    """Return a letter that a value does not contain."""
    return next(name for name in "xyzkmn" + "ABCDEFGH" if name not in value)


def name_value(pattern: str) -> Rewrite:
    """Return the rewrite that names a scalar by a letter."""

    def rewrite(gold: str) -> str | None:
        value = bare_value(gold)
        return in_box(pattern.format(name=unused_name(value), value=value)) if is_scalar(value) else None

    return rewrite


def name_tuple(gold: str) -> str | None:
    """Name the coordinates of a pair or triple."""
    found = read_collection(bare_value(gold))
    if found is None or not found.is_tuple or len(found.items) > 3 or re.search("[xyz]", str(found)):
        return None
    return in_box(f"({', '.join('xyz'[: len(found.items)])}) = {bare_value(gold)}")


def drop_name(gold: str) -> str | None:
    """Leave the name of a value out."""
    value = bare_value(gold)
    named = re.fullmatch(r"[a-zA-Z]\s*=\s*([^=]+)", value)
    return in_box(named[1]) if named and is_scalar(named[1]) and value[0] not in named[1] else None


def say_member(gold: str) -> str | None:
    """Say that x is in an interval."""
    found = read_collection(bare_value(gold))
    return in_box(rf"x \in {bare_value(gold)}") if found and found.is_interval and "x" not in str(found) else None


def interval_to_inequality(gold: str) -> str | None:
    """Write an interval as an inequality of x."""
    found = read_collection(bare_value(gold))
    if found is None or not found.is_interval or "x" in str(found):
        return None
    low, high = found.items
    left, right = ("<" if bracket in "()" else r"\le" for bracket in found.brackets)
    if "infty" in low:
        return None if "infty" in high else in_box(f"x {right} {high}")
    if "infty" in high:
        return in_box(f"x {left.replace('<', '>').replace('le', 'ge')} {low}")
    return in_box(f"{low} {left} x {right} {high}")


def inequality_to_interval(gold: str) -> str | None:
    """Write an inequality of one letter as an interval."""
    value = bare_value(gold).replace(r"\leq", r"\le").replace(r"\geq", r"\ge")
    parts = [part.strip() for part in re.split(r"(<|>|\\le(?![a-z])|\\ge(?![a-z]))", value)]
    if not is_formula(value) or "=" in value or len(parts) not in (3, 5):
        return None
    if len(parts) == 3 and re.fullmatch("[a-z]", parts[0]) and is_scalar(parts[2]) and parts[0] not in parts[2]:
        sign, bound = parts[1], parts[2]
        if sign in ("<", r"\le"):
            return in_box(rf"(-\infty, {bound}{')' if sign == '<' else ']'}")
        return in_box(rf"{'(' if sign == '>' else '['}{bound}, \infty)")
    if len(parts) == 5 and re.fullmatch("[a-z]", parts[2]) and {parts[1], parts[3]} <= {"<", r"\le"}:
        brackets = ("(" if parts[1] == "<" else "["), (")" if parts[3] == "<" else "]")
        return in_box(f"{brackets[0]}{parts[0]}, {parts[4]}{brackets[1]}")
    return None


def expand_sign(gold: str) -> str | None:
    r"""Write both values of one ``\pm``."""
    value = bare_value(gold)
    if not is_formula(value) or is_relation(value) or value.count(r"\pm") != 1 or len(split_items(value)) > 1:
        return None
    plus, minus = (re.sub(r"\\pm\s*", sign, value).lstrip("+") for sign in ("+", "-"))
    return None if re.search(r"[(\[]|\\\{|\\frac.*\\pm", value) else in_box(f"{plus}, {minus}")


def swap_terms(gold: str) -> str | None:
    """Swap the terms of a sum of two."""
    value = bare_value(gold)
    if not is_scalar(value) or value.startswith("-"):
        return None
    places = [place for place, sign in enumerate(value) if sign in "+-" and _depth_at(value, place) == 0]
    if len(places) != 1 or re.search(r"\\(?:sum|prod|int|lim|pm|mp|sin|cos|tan|log|ln|mod|pmod)|!|,", value):
        return None
    first, sign, second = value[: places[0]].strip(), value[places[0]], value[places[0] + 1 :].strip()
    return in_box(f"{'-' if sign == '-' else ''}{second} + {first}") if first and second else None


def _depth_at(value: str, place: int) -> int:
    return sum((character in "([{") - (character in ")]}") for character in value[:place])


def swap_sides(gold: str) -> str | None:
    """Swap the sides of an equation in which both have letters or sums."""
    value = bare_value(gold)
    sides = [side.strip() for side in value.split("=")]
    if len(sides) != 2 or len(split_items(value)) > 1 or re.search(r"[<>(]|\\n?[lg]e", value) or not is_formula(value):
        return None
    if not all(re.search("[a-zA-Z]", side) for side in sides):
        return None
    return in_box(f"{sides[1]} = {sides[0]}")


def merge_surd(gold: str) -> str | None:
    """Take the factor of a square root under it."""
    surd = re.fullmatch(r"(\d+)\s*\\sqrt\{(\d+)\}", bare_value(gold))
    return in_box(rf"\sqrt{{{int(surd[1]) ** 2 * int(surd[2])}}}") if surd and int(surd[1]) else None


def split_surd(gold: str) -> str | None:
    """Write the factor of a square root behind it."""
    surd = re.fullmatch(r"(\d+)\s*(\\sqrt\{\w+\})", bare_value(gold))
    return in_box(rf"{surd[2]} \cdot {surd[1]}") if surd else None


def slash_fraction(gold: str) -> str | None:
    r"""Write the one ``\frac`` of a value with a slash and brackets."""
    value = bare_value(gold)
    found = re.fullmatch(r"(-?)\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", value)
    return in_box(f"{found[1]}({found[2]})/({found[3]})") if found and is_scalar(value) else None


def unicode_roots(gold: str) -> str | None:
    """Write square roots of numbers and letters with the sign of Unicode."""
    value = bare_value(gold)
    written = re.sub(r"\\sqrt\{(\d+|[a-z])\}", r"√\1", value) if is_formula(value) else value
    written = re.sub(r"√(\d+|[a-z])(?=[\da-z])", r"√(\1)", written)
    return None if written == value else in_box(written)


def unicode_powers(gold: str) -> str | None:
    """Write exponents as superscripts."""
    value = bare_value(gold)
    pattern = r"(?<=[\da-zA-Z)])\^(?:\{(-?\d+)\}|(\d))"
    if not is_formula(value):
        return None
    written = re.sub(pattern, lambda power: (power[1] or power[2]).translate(_SUPERSCRIPTS), value)
    return None if written == value else in_box(written)


def unicode_signs(gold: str) -> str | None:
    """Write infinities, pi, signs of order and the like in Unicode."""
    value = bare_value(gold)
    written = value
    for pattern, sign in _SIGNS.items():
        written = re.sub(pattern, sign, written)
    return None if written == value or not is_formula(value) else in_box(written)


def lay_out_matrix(gold: str) -> str | None:
    """Write every row of a matrix in a line of its own."""
    value = bare_value(gold)
    if r"\begin" not in value or "\n" in value:
        return None
    written = re.sub(r"\s*\\\\\s*", r" \\\\" + "\n", value)
    written = re.sub(r"(\\begin\{\w+\}(?:\{[lcr|]+\})?)\s*", r"\1" + "\n", written)
    return in_box(re.sub(r"\s*(\\end\{)", "\n" + r"\1", written))


def matrix_as_array(gold: str) -> str | None:
    r"""Write a matrix with ``array`` and brackets."""
    found = re.fullmatch(r"\\begin\{[pb]matrix\}(.*)\\end\{[pb]matrix\}", bare_value(gold), re.DOTALL)
    if found is None or r"\begin" in found[1]:
        return None
    columns = "c" * (found[1].split(r"\\")[0].count("&") + 1)
    return in_box(rf"\left[\begin{{array}}{{{columns}}}{found[1]}\end{{array}}\right]")


def read_base(value: str) -> tuple[str, str] | None:
    """Read a number with the index of its base."""
    found = re.fullmatch(r"([0-9A-F]+)_(?:\{(\d+)\}|(\d))", value)
    return (found[1], found[2] or found[3]) if found else None


def read_bracketed_unit(value: str) -> tuple[str, str] | None:
    """Read a number with a unit in brackets."""
    found = re.fullmatch(r"(-?[\d.,/]+) \(([a-zA-Z ]+)\)", value)
    return (found[1], found[2]) if found and is_number(found[1]) else None


def read_money(value: str) -> Fraction | None:
    """Read an amount of dollars."""
    found = re.fullmatch(r"\\\$\s*(\S+)", value)
    return read_number(found[1]) if found else None


def read_degrees(value: str) -> str | None:
    """Read a number of degrees."""
    found = re.fullmatch(r"(-?[\d.]+)\s*\^\s*(?:\\circ|\{\s*\\circ\s*\})", value)
    return found[1] if found else None


def read_complex(value: str) -> str | None:
    """Return a value in which i is the imaginary unit."""
    found = is_scalar(value) and re.fullmatch(r"[-+\d\s{}/.]*(?:\\sqrt\{\d+\}|\\frac|[-+\d\s{}/.])*i[-+\d\s{}]*", value)
    return value if found else None


def remove_spaces(gold: str) -> str | None:
    """Remove every space that parts neither a command from letters nor two numbers."""
    value = bare_value(gold)
    if not is_formula(value) or re.search(r"\d\s+[\d\\]", value):
        return None
    written = re.sub(r"(?<![\\A-Za-z])[ ]+|(?<!\\)[ ]+(?![A-Za-z0-9])", "", value)
    return None if written == value else in_box(written)


def space_out(space: str) -> Rewrite:
    """Return the rewrite that puts a space around signs of operation and behind commas."""

    def rewrite(gold: str) -> str | None:
        value = bare_value(gold)
        if not is_formula(value) or read_number(value) is not None or re.search(r"\{,\}|\d,\d{3}", value):
            return None
        written = re.sub(r"(?<=[\w)}])\s*([-+=])\s*(?=[\w(\\])", rf"{space}\1{space}", value)
        written = re.sub(r",\s*", f",{space}", written)
        return None if written == value else in_box(written)

    return rewrite


def size_brackets(gold: str) -> str | None:
    r"""Put ``\left`` and ``\right`` before brackets."""
    value = bare_value(gold)
    if not is_formula(value) or r"\left" in value or re.search(r"\\[bB]ig", value):
        return None
    if sum(value.count(bracket) for bracket in "([") != sum(value.count(bracket) for bracket in ")]"):
        return None
    written = re.sub(r"\\\{|(?<!\\)[(]|(?<![\\t])\[", lambda opened: rf"\left{opened[0]}", value)
    written = re.sub(r"\\\}|(?<!\\)[)]|(?<!\\)\]", lambda closed: rf"\right{closed[0]}", written)
    return None if written == value or r"\sqrt[" in value else in_box(written)


def plain_brackets(gold: str) -> str | None:
    r"""Leave ``\left`` and ``\right`` out."""
    value = bare_value(gold)
    if not is_formula(value) or re.search(r"\\(?:left|right)\s*[.|]", value):
        return None
    written = re.sub(r"\\(?:left|right)(?![a-z])\s*", "", value)
    return None if written == value else in_box(written)


def other_value(gold: str) -> str:
    """Return a value that a gold is not."""
    value = bare_value(gold)
    number = read_number(value)
    if number is not None and number.denominator == 1:
        return str(number - 2 if number == -1 else number + 1)
    letter = read_letter(value)
    if letter:
        return "B" if letter != "B" else "D"
    return "9173" if "9173" not in value else "2861"


def mention_other(pattern: str) -> Rewrite:
    """Return the rewrite that mentions another value where it states nothing."""
    return lambda gold: pattern.replace("VALUE", bare_value(gold)).replace("OTHER", other_value(gold))


def write_case(change: Callable[[str], str]) -> Rewrite:
    """Return the rewrite of a text in other letters."""
    return rewrite_read(read_text, lambda text: rf"\text{{{change(text)}}}")


STATEMENTS: dict[str, Rewrite] = {
    "in a box": state_value(r"\boxed{", "}"),
    "box with spaces inside": state_value(r"\boxed{ ", " }"),
    "space before the brace of the box": state_value(r"\boxed {", "}"),
    "framed box": state_value(r"\fbox{", "}", is_formula),
    "box in displayed mathematics": state_value("Therefore\n$$\n\\boxed{", "}.\n$$\nThis is what was asked for."),
    "box after an equation": state_value(r"So $n + 1 = \boxed{", "}$, as 3 of 4 cases show."),
    "phrase with dollars": state_value("The final answer is $", "$. I hope it is correct.", is_sentence),
    "phrase without dollars": state_value("The answer is ", ".", is_sentence),
    "phrase with a colon": state_value("The answer is: ", "", is_sentence),
    "phrase with inline brackets": state_value(r"The answer is \(", r"\).", is_sentence),
    "phrase with a box": state_value(r"The answer is $\boxed{", "}$."),
    "phrase in bold": state_value("**The final answer is $", "$.**", is_sentence),
    "phrase, answer in the next line": state_value("The answer is\n", "", is_sentence),
    "phrase, answer displayed below": state_value("The answer is:\n\n$$", "$$", is_sentence),
    "phrase, answer in display brackets": state_value("The final answer is\n\\[\n", "\n\\]", is_sentence),
    "label": state_value("Answer: ", "", is_sentence),
    "label in bold": state_value("**Answer:** $", "$", is_sentence),
    "label, answer in the next line": state_value("Answer:\n", "", is_sentence),
    "heading": state_value("### Final Answer\n$", "$", is_sentence),
    "tag": state_value("<answer>", "</answer>"),
    "tag in lines of its own": state_value("<answer>\n$", "$\n</answer>", is_sentence),
    "tag around a box": state_value(r"<answer>\boxed{", "}</answer>"),
    "hashes": state_value("#### ", "", is_sentence),
    "thought of another first": mention_other(r"<think>Maybe \boxed{OTHER}.</think>So \boxed{VALUE}."),
    "thought long, then said": mention_other("<think>The answer is OTHER? Wait.\n</think>\n\n\\boxed{VALUE}"),
    "corrected box": mention_other(r"First I got \boxed{OTHER}, which is a slip. Corrected: \boxed{VALUE}."),
}
"""How an answer may be stated."""

NOTATION: dict[str, Rewrite] = {
    r"\dfrac": replace_pattern(r"\\t?frac(?![a-z])", r"\\dfrac"),
    r"\tfrac": replace_pattern(r"\\d?frac(?![a-z])", r"\\tfrac"),
    r"\frac without braces": replace_pattern(r"\\frac\{(\d)\}\{(\d)\}", r"\\frac\1\2"),
    "fraction with a slash": rewrite_read(
        read_number, lambda number: None if number.denominator == 1 else f"{number.numerator}/{number.denominator}"
    ),
    "quotient with a slash and brackets": slash_fraction,
    r"\left and \right": size_brackets,
    r"no \left and \right": plain_brackets,
    "no spaces": remove_spaces,
    "spaces": space_out(" "),
    r"thin spaces (\,)": space_out(r"\\,"),
    r"medium spaces (\;)": space_out(r"\\;"),
    "non-breaking spaces (~)": space_out("~"),
    r"negative spaces (\!)": replace_pattern(r"(?=\\left|(?<!left)(?<!\^)[(\[])", r"\\!"),
    "line ends behind commas": replace_pattern(r",\s+", ",\n"),
    "matrix over several lines": lay_out_matrix,
    "other brackets of a matrix": replace_pattern(
        r"\{(p|b)matrix\}",
        lambda found: f"{{{'b' if found[1] == 'p' else 'p'}matrix}}",  # pyright: ignore[reportArgumentType]
    ),
    "matrix as an array": matrix_as_array,
    "bold": enclose_value(r"\mathbf{", "}"),
    "bold symbol": enclose_value(r"\boldsymbol{", "}"),
    "old bold": enclose_value(r"{\bf ", "}", lambda value: is_number(value) or read_letter(value)),
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
        r"(?<![\\A-Za-z_^\d])(\d+)\s*(?=[a-zA-Z](?![a-zA-Z])|\\(?:sqrt|pi))", r"\1 \\cdot ", is_scalar
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
    r"braces of sets by \lbrace": replace_pattern(r"\\([{}])", lambda found: "\\" + "lr"[found[1] == "}"] + "brace "),  # pyright: ignore[reportArgumentType]
    "unicode roots": unicode_roots,
    "unicode exponents": unicode_powers,
    "unicode signs": unicode_signs,
    "unicode minus": replace_pattern("-", "\N{MINUS SIGN}", lambda value: is_formula(value) and r"\text" not in value),
    "dash for a minus": replace_pattern("^-", "\N{EN DASH}", is_number),
    "upright i": rewrite_read(read_complex, lambda value: re.sub(r"(?<![\\a-z])i", r"\\mathrm{i}", value)),
}
"""The same characters' worth of mathematics in other LaTeX."""

VALUES: dict[str, Rewrite] = {
    "thousands by commas": write_thousands(","),
    "thousands by commas in braces": write_thousands("{,}"),
    "thousands by thin spaces": write_thousands(r"\,"),
    "thousands by commas and negative spaces": write_thousands(r",\!"),
    "no separator of thousands": rewrite_read(
        lambda value: value if is_number(value) and "," in value else None, lambda value: value.replace(",", "")
    ),
    "trailing zero": rewrite_read(lambda value: value if is_bare_integer(value) else None, lambda value: f"{value}.0"),
    "trailing zero of a decimal": rewrite_read(
        lambda value: value if re.fullmatch(r"-?\d+\.\d+", value) else None, lambda value: f"{value}0"
    ),
    "leading zero": replace_pattern(r"^(-?)\.(\d+)$", r"\g<1>0.\2"),
    "leading plus": rewrite_read(read_number, write_unsigned("+{}")),
    "decimal for a fraction": rewrite_read(
        lambda value: None if "." in value else read_number(value), write_finite_decimal
    ),
    "fraction for a decimal": rewrite_read(
        lambda value: read_number(value) if "." in value else None,
        lambda number: write_fraction(number) if number.denominator > 1 else None,
    ),
    "repeating decimal": rewrite_read(read_number, write_period),
    "fraction not reduced": rewrite_read(read_number, write_repeated),
    "sign in the numerator": rewrite_read(read_number, write_top_sign),
    "glyph of a fraction": rewrite_read(read_number, _GLYPHS.get),
    "mixed number": rewrite_read(read_number, write_mixed(r"\frac{{{}}}{{{}}}")),
    "mixed number in plain text": rewrite_read(read_number, write_mixed(" {}/{}")),
    "fraction for a mixed number": rewrite_read(read_mixed, write_fraction),
    "power of ten": rewrite_read(read_long, write_power(r"{digits} \times 10^{{{exponent}}}")),
    "power of ten by a dot": rewrite_read(read_long, write_power(r"{digits}\cdot 10^{{{exponent}}}")),
    "power of ten by e": rewrite_read(read_long, write_power("{digits}e{exponent}")),
    "power of ten in unicode": rewrite_read(read_long, write_power("{digits} \N{MULTIPLICATION SIGN} 10{raised}")),
    "power of ten with a unit": rewrite_read(
        read_scientific, write_power(r"{digits} \times 10^{{{exponent}}}\text{{ J}}")
    ),
    "million": rewrite_read(read_number, write_million),
    "unit in a text command": enclose_value("", r"\text{ cm}", is_number),
    "unit in upright letters": enclose_value("", r"\,\mathrm{cm}", is_number),
    "unit with a non-breaking space": enclose_value("", r" \mathrm{~kg}", is_number),
    "unit with a square": enclose_value("", r"\text{ m}^2", is_number),
    "unit as a word": enclose_value("", " apples", is_number),
    "dollars": rewrite_read(read_number, write_unsigned(r"\${}")),
    "word for dollars": rewrite_read(read_money, write_unsigned("{} dollars")),
    "amount without its sign": rewrite_read(read_money, write_unsigned("{}")),
    "unescaped sign of per cent": rewrite_read(read_percentage, write_unsigned("{}%")),
    "space before the sign of per cent": rewrite_read(read_percentage, write_unsigned(r"{}\,\%")),
    "word for per cent": rewrite_read(read_percentage, write_unsigned(r"{}\text{{ percent}}")),
    "percentage without its sign": rewrite_read(read_percentage, write_unsigned("{}")),
    "share for a percentage": rewrite_read(read_percentage, write_percent_decimal),
    "word for degrees": rewrite_read(read_degrees, lambda digits: rf"{digits}\text{{ degrees}}"),
    "degrees without their sign": rewrite_read(read_degrees, str),
    "number without its unit": rewrite_read(read_bracketed_unit, lambda found: found[0]),
    "unit out of its brackets": rewrite_read(read_bracketed_unit, " ".join),
    "unit in a text command for one in brackets": rewrite_read(
        read_bracketed_unit, lambda found: rf"{found[0]}\text{{ {found[1]}}}"
    ),
    "base in braces": rewrite_read(read_base, lambda found: f"{found[0]}_{{{found[1]}}}"),
    "base without braces": rewrite_read(
        read_base, lambda found: f"{found[0]}_{found[1]}" if len(found[1]) == 1 else None
    ),
    "base of a number in brackets": rewrite_read(read_base, lambda found: f"({found[0]})_{{{found[1]}}}"),
    "terms swapped": swap_terms,
    "sides swapped": swap_sides,
    "factor under the root": merge_surd,
    "factor behind the root": split_surd,
    "both signs written out": expand_sign,
    "name before a value": name_value("{name} = {value}"),
    "function before a value": name_value("f(2) = {value}"),
    "name of two letters' sum before a value": name_value("p+q = {value}"),
    "name before a tuple": name_tuple,
    "name before every value of a list": name_items,
    "value without its name": drop_name,
    "member of an interval": say_member,
    "inequality for an interval": interval_to_inequality,
    "interval for an inequality": inequality_to_interval,
    "set in another order": permute(lambda found: found.is_set),
    "list in another order": permute(is_plain_list),
    "and in a list": join_list(r" \text{ and } "),
    "or in a list": join_list(r" \text{ or } "),
    "text in a text command": rewrite_read(read_text, lambda text: rf"\text{{{text}}}"),
    "text without a text command": rewrite_read(read_text, str),
    "text in bold": rewrite_read(read_text, lambda text: rf"\textbf{{{text}}}"),
    "text in upright letters": rewrite_read(read_text, lambda text: rf"\mathrm{{{text}}}" if " " not in text else None),
    "text in quotation marks": rewrite_read(read_text, lambda text: f'"{text}"'),
    "text with a full stop": rewrite_read(read_text, lambda text: rf"\text{{{text}.}}"),
    "text in small letters": write_case(str.lower),
    "text in capital letters": write_case(str.upper),
    "letter with a full stop": rewrite_read(read_letter, "{}.".format),
    "letter with a bracket": rewrite_read(read_letter, "{})".format),
    "letter in brackets": rewrite_read(read_letter, "({})".format),
    "letter in a text command": rewrite_read(read_letter, r"\text{{({})}}".format),
    "letter in bold with its option": rewrite_read(read_letter, r"\textbf{{({}) }} 12".format),
    "letter with its option": rewrite_read(read_letter, "{}. 12".format),
    "letter with a colon and its option": rewrite_read(read_letter, "{}: 12".format),
    "letter of the option": rewrite_read(read_letter, r"\text{{Option {}}}".format),
}
"""The same value in another form."""

EQUAL = {**STATEMENTS, **NOTATION, **VALUES}
