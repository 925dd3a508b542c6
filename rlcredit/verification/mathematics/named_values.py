r"""Names in front of equality signs, and the values they are given, in any order."""

import re
from collections.abc import Mapping, Sequence

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.expressions import is_finished_expression
from rlcredit.verification.mathematics.notation import FUNCTION_NAMES
from rlcredit.verification.mathematics.structure import (
    AND_WORDS,
    OR_WORDS,
    mark_conjunctions,
    read_brackets,
    split_list_items,
    split_outside_brackets,
    squeeze_blanks,
)
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


_SINGLE_NAMES = (_NAME, _DERIVATIVE, _NAMED_TUPLE, _OPERATION, _MEASURE)
_NAMES = (*_SINGLE_NAMES, _SUM_OF_NAMES, _SETS, _RATIO)
_PRODUCT = re.compile(r"(?!(?:det|dim|arg|deg|gcd|lcm|max|min|sup|inf|ans|vol)$)[a-z]{2,3}")
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
    return any(pattern.fullmatch(text) for pattern in _NAMES)


def is_single_name(text: str) -> bool:
    r"""Whether a text names one value, or a tuple: ``x``, ``f(2)``, ``AB``, ``(x, y)``, but not ``x + y`` or ``xy``.

    Example:
        >>> [is_single_name(text) for text in ("x_{1}", "AB", r"\frac{dy}{dx}", "x + 2y", "xy", r"\frac{x}{y}")]
        [True, True, True, False, False, False]

    """
    text = text.strip()
    single = any(pattern.fullmatch(text) for pattern in _SINGLE_NAMES)
    is_sum = len(split_outside_brackets(text, "+-")) > 1
    return single and not (is_sum or _DENIAL.search(text) or _PRODUCT.fullmatch(text))


_CONSTANT = re.compile(rf"(?:e|\\(?:{'|'.join((*FUNCTION_NAMES, 'pi', 'infty'))}))(?![A-Za-z_'])")
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
    sides = split_equation_sides(text)
    return sides[1] if len(sides) == 2 and is_value_name(sides[0]) and not _is_in_own_value(*sides) else text


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
    has_name, last_part = is_value_name(parts[0]), parts[-1]
    if has_name and _is_in_own_value(parts[0], last_part):
        return ""
    middle_parts = parts[1:-1] if has_name else parts[:-1]
    is_computed = all(_COMPUTATION.fullmatch(part) and _WORK.search(part) for part in middle_parts)
    if (
        not all(is_finished_expression(part) or is_value_name(part) for part in middle_parts)
        or not last_part
        or not (has_name or is_computed)
    ):
        return ""
    if middle_parts and not is_finished_expression(read_quantity(last_part).value):
        return ""
    value = read_quantity(last_part).value
    return last_part if all(compare.values.is_equal(read_quantity(part).value, value) for part in middle_parts) else ""


_SYMBOL = re.compile(r"\\text\{[^{}]*\}|(?:\\[A-Za-z]+|[A-Za-z])(?:_\{\w+\})?")
_COMMAND_END = re.compile(r"\\[A-Za-z]+$")
_BOUND = re.compile(rf"(\\?[A-Za-z]+'*(?:\^\{{-1\}})?)\s*(?:\(\s*({_ONE}(?:\s*,\s*{_ONE})*)\s*\)|_\{{\s*([i-t])\s*\}})")


def rename_letters(text: str, names: Mapping[str, str]) -> str:
    r"""Return a text in which each name is another one.

    Example:
        >>> rename_letters(r"t + \sin(t)", {"t": "x"})
        'x + \\sin(x)'

    """

    def rename(symbol: re.Match[str]) -> str:
        name = names.get(symbol[0], symbol[0])
        is_joined = name != symbol[0] and _COMMAND_END.search(symbol.string, 0, symbol.start())
        return " " * bool(is_joined) + name + " " * (name != symbol[0] and name.startswith("\\"))

    return _SYMBOL.sub(rename, text)


def rename_bound_names(ours: Sequence[str], their_side: str) -> list[str]:
    """Return the sides of ``f(t) = 2t`` with the names of ``f(x)``, where they say the same of any ``t``.

    They are the same function only if the right side says nothing of ``x`` beforehand.
    """
    our, their = _BOUND.fullmatch(ours[0]), _BOUND.fullmatch(their_side)
    if our is None or their is None or our[1] != their[1] or bool(our[2]) != bool(their[2]):
        return list(ours)
    old, new = ([name.strip() for name in (match[2] or match[3]).split(",")] for match in (our, their))
    symbols = {symbol[0] for side in ours[1:] for symbol in _SYMBOL.finditer(side)}
    if len(set(old)) != len(new) or len(old) != len(new) or symbols & (set(new) - set(old)):
        return list(ours)
    new_names = dict(zip(old, new, strict=True))
    return [their_side, *(rename_letters(side, new_names) for side in ours[1:])]


Assignment = dict[str, str]
"""A value for each of some names."""

_MEMBER = re.compile(r"(.+?)\s*\\in(?![A-Za-z])\s*(\\\{.*\\\}|\\emptyset)", re.DOTALL)
_ALPHABETS = ("abcdefgh", "klmn", "pqrst", "uvwxyz")


def read_assignments(text: str) -> list[Assignment] | None:
    r"""Return the alternatives that a text gives for the values of its names; None if it gives none.

    A name that comes again begins another alternative, and so does ``or``. A value without a name belongs to the names
    before it.

    Example:
        >>> read_assignments("b = 5, a = 3"), read_assignments(r"(x, y) = (1, 2), (3, 4)")
        ([{'b': '5', 'a': '3'}], [{'x': '1', 'y': '2'}, {'x': '3', 'y': '4'}])
        >>> read_assignments(r"x \in \{2, 5\}"), read_assignments("x + y = 7, x = 1")
        ([{'x': '2'}, {'x': '5'}], None)

    """
    alternatives, current_name = list[Assignment](), ""
    for choice in split_outside_brackets(mark_conjunctions(text), OR_WORDS):
        begins = True
        for part in split_outside_brackets(choice, [",", ";", *AND_WORDS]):
            values = _read_assignment(part, current_name) if part else []
            if values is None:
                return None
            current_name = next(iter(_split_statement(part)[0]), current_name)
            for value in values:
                begins |= not alternatives or bool(alternatives[-1].keys() & value.keys())
                alternatives += [{}] * begins
                alternatives[-1] = {**alternatives[-1], **value}
                begins = False
    names = {frozenset(alternative) for alternative in alternatives}
    return alternatives if len(names) == 1 or (_MEMBER.fullmatch(text) and not names) else None


def _split_statement(text: str) -> tuple[list[str], str]:
    """Return the names that a statement gives a value to, and the value or the set in which it is."""
    member = _MEMBER.fullmatch(text)
    *names, value = (member[1], member[2]) if member else split_equation_sides(text)
    return names, value


def _read_assignment(text: str, current_name: str) -> list[Assignment] | None:
    """Return the alternatives of one statement; those of the names on the left where it states none of its own."""
    names, value = _split_statement(text)
    names = names or [current_name]
    alternatives = list[Assignment]()
    for element in split_list_items((read_brackets(value) or ("", "", ""))[1] if _MEMBER.fullmatch(text) else value):
        pairs = [pair for name in names for pair in _pair_names_with_values(name, element)]
        if element and not pairs:
            return None
        alternatives += [dict(pairs)] * bool(pairs)
    return alternatives if all(map(is_single_name, names)) else None


def _pair_names_with_values(name_text: str, value_text: str) -> list[tuple[str, str]]:
    """Return each name of ``(x, y)`` with its value in ``(1, 2)``, or one name with its value; nothing otherwise."""
    names = read_brackets(name_text)
    if names is None:
        return [(squeeze_blanks(name_text), value_text)] if value_text else []
    values = read_brackets(value_text)
    if values is None or values[::2] != ("(", ")"):
        return []
    pairs = [[squeeze_blanks(element) for element in split_outside_brackets(side[1], ",;")] for side in (names, values)]
    return list(zip(*pairs, strict=True)) if len(pairs[0]) == len(pairs[1]) else []


def list_named_values(text: str) -> list[list[str]]:
    """Return the values of each alternative, by the names' alphabet or as they stand; none if a text names no values.

    The values of ``y=4, x=3`` go by the alphabet, those of ``m=3, b=4`` as they stand.
    """
    alternatives = read_assignments(text) or []
    names = list(alternatives[0]) if alternatives else []
    initials = {name[0] for name in names}
    has_alphabet = len(initials) == 1 or any(initials <= set(letters) for letters in _ALPHABETS)
    names = sorted(names, key=_build_index_key) if has_alphabet else names
    return [[alternative[name] for name in names] for alternative in alternatives]


def _build_index_key(name: str) -> tuple[str, int, str]:
    number = re.search(r"\d+", name)
    return (name[0], int(number[0]) if number else 0, name)


def write_tuples(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of values as tuples, those of one value as they are."""
    return [f"({', '.join(row)})" if len(row) > 1 else row[0] for row in rows]
