r"""Names in front of equality signs."""

import re

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.expressions import is_finished_expression
from rlcredit.verification.mathematics.notation import FUNCTIONS
from rlcredit.verification.mathematics.structure import split_outside_brackets
from rlcredit.verification.mathematics.units import read_quantity

_ARGUMENT = r"(?:\((?:[^()=]|=(?=\s*\w)|\([^()=]{1,20}\)){1,40}\)|\[[^\[\]=]{1,20}\])"
_NAME = re.compile(
    r"(?:m\s*(?=\\angle))?"
    r"(?:\\(?:angle|triangle|vec|overline|hat|bar|mathcal|mathbb|widehat|Delta|text|det|dot|ddot|sin|cos|tan|cot)\s*){0,2}"
    r"(?:\{[A-Za-z ]{1,20}\}|\\?[A-Za-z]{1,12})'*(?:_\{(?:[\w, \\+-]|\\text\{[\w ]*\}){1,30}\})?'*"
    rf"(?:\^\{{(?:-1|\(\w\))\}}(?=\s*\())?(?:\s*{_ARGUMENT})?"
)
_OPERATION = re.compile(r"\\(?:lim|sum|prod|int|iint|oint|max|min|sup|inf|log|ln|gcd|lcm)(?![A-Za-z])[^<>]{1,80}")
_MEASURE = re.compile(
    r"\[[A-Z]{3,6}\]|\|[^|]{1,20}\||\\\|[^|]{1,20}\\\||\(?[a-z]\s*\^\{\\circ\}\s*[a-z]\)?\s*\([a-z\d]\)"
)
_SETS = re.compile(r"[A-Z]'?(?:\s*\\(?:cup|cap|setminus)\s*[A-Z]'?){1,3}")
_RATIO = re.compile(r"\\frac\{([A-Za-z]{1,3})\}\{[A-Za-z]{1,3}\}|[A-Za-z]{1,3}\s*/\s*[A-Za-z]{1,3}")
_SUM_OF_NAMES = re.compile(r"[A-Za-z](?:_\{\w+\})?(?:\s*(?:[-+]|\\cdot )?\s*\d*\s*[A-Za-z](?:_\{\w+\})?){1,6}")
_DERIVATIVE = re.compile(
    r"\\frac\{(?:d|\\partial)(?:\^\{\d\})?\s*[a-z]?\}\{(?:d|\\partial)\s*[a-z](?:\^\{\d\})?\}(?:\s*[a-z](?:\([a-z]\))?)?"
)
_ONE = r"(?:[A-Za-z]|\\[a-z]{2,8})(?:_\{\w+\})?'*"
_NAMED_TUPLE = re.compile(rf"\(\s*{_ONE}(?:\s*[,;]\s*{_ONE}){{1,6}}\s*\)")


_NAMES = (_NAME, _SUM_OF_NAMES, _DERIVATIVE, _NAMED_TUPLE, _OPERATION, _MEASURE, _SETS, _RATIO)
_DENIAL = re.compile(r"(?<![A-Za-z])(?:not|no|never|isn|neither|or|wrong)(?![A-Za-z])", re.IGNORECASE)


def is_value_name(text: str) -> bool:
    r"""Whether a text is what somebody calls a value: ``x``, ``f(2)``, ``m+n``, ``\angle A``, ``(x, y)``.

    Example:
        >>> [is_value_name(text) for text in ("x", "f(2)", "m + n", r"\angle A", "(x,y)", r"\frac{dy}{dx}")]
        [True, True, True, True, True, True]
        >>> [is_value_name(text) for text in ("2+3", "2x", "5")]
        [False, False, False]

    """
    text = text.strip()
    if _DENIAL.search(text):
        return False
    return any(each.fullmatch(text) for each in _NAMES)


_CONSTANT = re.compile(rf"(?:e|\\(?:{'|'.join((*FUNCTIONS, 'pi', 'infty'))}))(?![A-Za-z_'])")
"""Symbols with a value of their own, which only look like names."""


def is_variable(text: str) -> bool:
    r"""Whether a text is one name: ``x``, ``f(2)``, ``\\angle A``, but not ``m+n``.

    Example:
        >>> is_variable("x_{1}"), is_variable("m + n")
        (True, False)

    """
    return _NAME.fullmatch(text.strip()) is not None and is_value_name(text) and not _CONSTANT.match(text.strip())


_WORK = re.compile(r"\d{2}|\s[-+*/]\s|\\[a-z]|\^")
_COMPUTATION = re.compile(r"[\d(\\].*(?:[-+/^]|\\cdot|\\times|\\div|\\frac|\\binom).*|\\(?:frac|sqrt).*", re.DOTALL)


def split_equation_sides(text: str) -> list[str]:
    r"""Return the sides of the equality signs of a text.

    Example:
        >>> split_equation_sides("m + n = 5")
        ['m + n', '5']
        >>> split_equation_sides(r"x \\le 5"), split_equation_sides(r"\\{x : x = 2\\}")
        (['x \\\\le 5'], ['\\\\{x : x = 2\\\\}'])

    """
    return split_outside_brackets(text, "=")


def drop_leading_name(text: str) -> str:
    """Return the value of ``name = value``; any other text as it is."""
    both = split_equation_sides(text)
    return both[1] if len(both) == 2 and is_value_name(both[0]) and not _is_in_own_value(*both) else text


def _is_in_own_value(name: str, value: str) -> bool:
    """Whether a value has the name that it is said to have: ``x = x + 1`` is an equation."""
    return re.search(rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z_'(])", value) is not None


def read_chain_value(answer: str, compare: AnswerEquality) -> str:
    """Return the value of an answer without the names before its equality signs; None if it has none.

    ``x=5`` answers 5, and so do ``m+n=256+37=293`` and ``4 + 5 = 9``, if each side has the value of the last. ``2+3=5``
    without blanks, and without a number of two digits, is an equation and answers no value.
    """
    parts = split_equation_sides(answer)
    if len(parts) == 1:
        return answer
    named, last = is_value_name(parts[0]), parts[-1]
    if named and _is_in_own_value(parts[0], last):
        return ""
    between = parts[1:-1] if named else parts[:-1]
    computed = all(_COMPUTATION.fullmatch(part) and _WORK.search(part) for part in between)
    if (
        not all(is_finished_expression(part) or is_value_name(part) for part in between)
        or not last
        or not (named or computed)
    ):
        return ""
    if between and not is_finished_expression(read_quantity(last).value):
        return ""
    value = read_quantity(last).value
    return last if all(compare.values.is_equal(read_quantity(part).value, value) for part in between) else ""
