"""What kind of thing a gold answer is, read strictly: whatever is not plain is of no kind, and is not rewritten.

Nothing here knows the verifier, which it helps to measure.
"""

import re
from fractions import Fraction
from typing import NamedTuple

_PLAIN_NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+"
_DECIMAL = re.compile(rf"([-+]?)({_PLAIN_NUMBER})")
_FRACTION = re.compile(r"(-?)(?:\\[dt]?frac\s*(?:\{\s*(-?\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))|(\d+)\s*/\s*(\d+))")
_MIXED = re.compile(r"(-?)(\d+)\s*\\[dt]?frac\s*\{(\d+)\}\{(\d+)\}")
_SCIENTIFIC = re.compile(
    rf"(-?)({_PLAIN_NUMBER})(?:[eE]([-+]?\d{{1,2}})|\s*(?:\\times|\\cdot)\s*10\^(?:\{{([-+]?\d{{1,2}})\}}|(\d)))"
)
_RELATION = re.compile(r"[=<>≤≥≠~]|\\(?:leq?|geq?|lt|gt|neq?|equiv|approx|sim|in|subset)(?![A-Za-z])")
_NO_SCALAR = re.compile(r"\\[{}$]|\\c[ua]p|\\(?:[lc]?dots|begin|mid|emptyset|varnothing|mathbb|infty)|[:%]")
_NO_COLLECTION = re.compile(r"\\(?:[lc]?dots|begin|mid|!)|\{,\}|[;|]")
_NO_FORMULA = re.compile(r"\d+(?:[:/.-]\d+){2,}$|\d{1,2}:\d\d(?!\d)|-?[\d.,/]+ \([a-zA-Z ]+\)$")
"""A date, a time, a number with its unit in brackets."""
_COMMAND = re.compile(r"\\(?:begin|end)\{\w+\}(?:\{[lcr|]+\})?|\\[A-Za-z]+")
_TEXT_COMMAND = re.compile(r"\\(?:text|textbf|textit|textrm|mbox|mathrm|mathbf|operatorname)(?![a-z])")
_TEXT = re.compile(r"\\(?:text|mbox|textbf|textrm)\{([A-Za-z][A-Za-z' -]*[A-Za-z])\}|([A-Za-z][A-Za-z' -]*[A-Za-z])")
_LETTER = re.compile(r"\\(?:text|textbf|mathrm)\{\(?([A-E])\)?\}|\(?([A-E])\)?")
_BRACKETS = re.compile(
    r"(?P<open>\\left\s*\\\{|\\\{|\\left\s*[(\[]|[(\[])(?P<inside>.*?)(?P<close>\\right\s*\\\}|\\\}|\\right\s*[)\]]|[)\]])",
    re.DOTALL,
)


class GoldCollection(NamedTuple):
    r"""What stands in brackets, or, without them, in a list.

    Attributes:
        opened: Opening bracket, with its ``\left``; empty for a list without brackets.
        items: Items between commas.
        closed: Closing bracket.

    """

    opened: str
    items: list[str]
    closed: str

    def __str__(self) -> str:
        """Write it again."""
        return f"{self.opened}{', '.join(self.items)}{self.closed}"

    @property
    def brackets(self) -> str:
        """The brackets alone, such as ``[)``."""
        return (self.opened + self.closed).replace(r"\left", "").replace(r"\right", "").replace("\\", "").strip()

    @property
    def is_set(self) -> bool:
        """Whether it has braces, in which order means nothing."""
        return self.brackets == "{}"

    @property
    def is_interval(self) -> bool:
        """Whether it can be nothing but an interval."""
        unlike = self.brackets in ("[)", "(]")
        return (
            len(self.items) == 2
            and self.brackets not in ("", "{}")
            and (unlike or any(r"\infty" in item for item in self.items))
        )

    @property
    def is_tuple(self) -> bool:
        """Whether it has round brackets and is no interval by its looks."""
        return self.brackets == "()" and not self.is_interval


def strip_dollars(gold: str) -> str:
    """Return a gold without the dollars around it.

    Example:
        >>> strip_dollars(" $2x$ "), strip_dollars("$8$, $4$")
        ('2x', '$8$, $4$')

    """
    text = gold.strip()
    inside = re.fullmatch(r"\$((?:[^$\\]|\\.)+)\$", text, re.DOTALL)
    return inside[1].strip() if inside else text


def read_gold_number(value: str) -> Fraction | None:
    r"""Read an integer, a decimal or a fraction.

    Example:
        >>> [str(read_gold_number(text)) for text in ("1,000", ".5", r"-\frac{1}{2}", r"\dfrac34", "3/4")]
        ['1000', '1/2', '-1/2', '3/4', '3/4']
        >>> read_gold_number("1 2"), read_gold_number(r"5\%")
        (None, None)

    """
    value = value.strip()
    if decimal := _DECIMAL.fullmatch(value):
        return Fraction(decimal[1] + decimal[2].replace(",", ""))
    if fraction := _FRACTION.fullmatch(value):
        top, bottom = (int(next(filter(None, fraction.group(*places)))) for places in ((2, 3, 6), (4, 5, 7)))
        return (-1 if fraction[1] else 1) * Fraction(top, bottom) if bottom else None
    return None


def read_mixed_number(value: str) -> Fraction | None:
    """Read a mixed number."""
    mixed = _MIXED.fullmatch(value.strip())
    if mixed is None or not int(mixed[4]):
        return None
    return (-1 if mixed[1] else 1) * (int(mixed[2]) + Fraction(int(mixed[3]), int(mixed[4])))


def read_scientific_number(value: str) -> Fraction | None:
    r"""Read a number with a power of ten.

    Example:
        >>> str(read_scientific_number(r"1.5 \times 10^{3}")), str(read_scientific_number("2e-1"))
        ('1500', '1/5')
        >>> read_scientific_number("7") is None
        True

    """
    power = _SCIENTIFIC.fullmatch(value.strip())
    if power is None:
        return None
    exponent = int(power[3] or power[4] or power[5])
    return Fraction(power[1] + power[2].replace(",", "")) * Fraction(10) ** exponent


def read_percentage(value: str) -> Fraction | None:
    """Read the number before a sign of per cent."""
    found = re.fullmatch(r"(.*?)\s*\\?%", value.strip())
    return None if found is None else read_gold_number(found[1])


def read_gold_text(value: str) -> str | None:
    r"""Return the words of a text that is nothing else, of two letters or more.

    Example:
        >>> read_gold_text(r"\text{Evelyn}"), read_gold_text("no solution")
        ('Evelyn', 'no solution')
        >>> read_gold_text("C"), read_gold_text("sin x"), read_gold_text("2x")
        (None, None, None)

    """
    found = _TEXT.fullmatch(value.strip())
    words = (found[1] or found[2]) if found else ""
    if not re.search("[A-Za-z]{2}", words) or re.search(r"\b(?:sin|cos|tan|log|ln|pi|sqrt|or|and)\b", words):
        return None
    return words


def read_option_letter(value: str) -> str | None:
    """Return the letter of an option."""
    found = _LETTER.fullmatch(value.strip())
    return (found[1] or found[2]) if found else None


def split_at_outer_commas(text: str) -> list[str]:
    """Return what commas outside of all brackets part.

    Example:
        >>> split_at_outer_commas("(1,2), 3")
        ['(1,2)', '3']

    """
    items, depth, begun = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            items.append(text[begun:place].strip())
            begun = place + 1
    return [*items, text[begun:].strip()]


def read_gold_collection(value: str) -> GoldCollection | None:
    r"""Return the parts of a tuple, an interval, a set, or a list of two or more.

    Example:
        >>> read_gold_collection(r"\left[2, \infty\right)").brackets, read_gold_collection("1, -2").items
        ('[)', ['1', '-2'])
        >>> [read_gold_collection(text) for text in ("1,000", "(1+2)(3,4)", "(a+b)")]
        [None, None, None]

    """
    value = value.strip()
    if read_gold_number(value) is not None or not is_formula(value) or _NO_COLLECTION.search(value):
        return None
    listed = split_at_outer_commas(value)
    if len(listed) > 1:
        return GoldCollection("", listed, "") if all(listed) and not value.endswith(",") else None
    found = _BRACKETS.fullmatch(value)
    if found is None or not _is_enclosed(value):
        return None
    items = split_at_outer_commas(found["inside"])
    single = len(items) == 1 and "{" not in found["open"]
    return None if single or not all(items) else GoldCollection(found["open"], items, found["close"])


def _is_enclosed(value: str) -> bool:
    """Whether the first bracket closes with the last one."""
    depth = 0
    for place, character in enumerate(value):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and character in ")]}":
            return place == len(value) - 1
    return False


def is_formula(value: str) -> bool:
    r"""Whether a value is mathematics without words, dollars or open brackets.

    Example:
        >>> [is_formula(text) for text in (r"2\pi r", "x = 5", "no solution", r"5\text{ cm}", "$8$, $4$", "{")]
        [True, True, False, False, False, False]

    """
    depths = value.replace(r"\{", "").replace(r"\}", "")
    return not (
        re.search(r"(?<!\\)\$|\n\n|\\quad|\\qquad", value)
        or _TEXT_COMMAND.search(value)
        or re.search("[A-Za-z]{3}", _COMMAND.sub(" ", value))
        or depths.count("{") != depths.count("}")
        or not value
        or read_gold_text(value)
        or _NO_FORMULA.match(value)
    )


def is_relation(value: str) -> bool:
    """Whether a value has a sign of equality, inequality or membership."""
    return _RELATION.search(value) is not None


def is_unevaluated_scalar(value: str) -> bool:
    """Whether a value is a scalar that is not written as a number."""
    return is_scalar(value) and read_gold_number(value) is None and read_scientific_number(value) is None


def is_scalar(value: str) -> bool:
    """Whether a value is one formula that stands for one thing: no relation, no collection, no option."""
    return (
        is_formula(value)
        and not is_relation(value)
        and (read_gold_number(value) is not None or len(split_at_outer_commas(value)) == 1)
        and not _NO_SCALAR.search(value)
        and read_gold_collection(value) is None
        and read_option_letter(value) is None
    )
