r"""Equations, and families of values."""

import re
from collections.abc import Sequence

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.expressions import is_finished_expression
from rlcredit.verification.mathematics.named_values import (
    is_single_name,
    rename_bound_names,
    rename_letters,
    split_equation_sides,
)
from rlcredit.verification.mathematics.structure import (
    LIST_MARKS,
    has_matching_items,
    mark_conjunctions,
    split_list_items,
    split_outside_brackets,
    squeeze_blanks,
)

_IDENTITY = re.compile(r"([A-Za-z])(?:\s*\(\s*[a-z]\s*\))?\s*\\equiv(?![A-Za-z])((?:(?!\\equiv|mod).)+)")
_NAME = re.compile(r"(?<![A-Za-z\\])(?![ei](?![A-Za-z]))[A-Za-z]")
_FUNCTION = re.compile(r"[fghy]\s*\(\s*x\s*\)")


def is_equation(reference: str) -> bool:
    """Whether a reference has an equality sign, or several: a name with its value, or a curve."""
    sides = split_equation_sides(_write_identity_as_equation(reference))
    return len(sides) > 1 and all(sides) and len(split_outside_brackets(mark_conjunctions(reference), LIST_MARKS)) == 1


def _write_identity_as_equation(text: str) -> str:
    r"""Return ``f(x) \equiv 0`` as ``f = 0``; any other text as it is."""
    identity = _IDENTITY.fullmatch(text)
    return f"{identity[1]} = {identity[2]}" if identity else text


def is_same_equation(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer is the value that a reference names, or an equation with the same solutions.

    Of a reference of several steps (``i^5 = i^4 i = i``) the last one counts.
    """
    if _IDENTITY.fullmatch(reference):
        answer, reference = (_write_identity_as_equation(text.replace("=", r"\equiv ")) for text in (answer, reference))
    theirs, ours = split_equation_sides(reference), split_equation_sides(answer)
    ours = rename_bound_names(ours, theirs[0])
    if theirs[0] == "y" and _FUNCTION.fullmatch(ours[0]) and ours[0] not in reference:
        ours[0] = "y"
    if len(ours) == 1:
        return _is_named_value(theirs) and compare.is_equal(answer, theirs[-1])
    if not all(ours):
        return False
    if squeeze_blanks(ours[0]) == squeeze_blanks(theirs[0]):
        return compare.is_equal(ours[-1], theirs[-1]) and all(compare.is_equal(step, ours[-1]) for step in ours[1:-1])
    if len(ours) != 2 or len(theirs) != 2 or (is_single_name(theirs[0]) and not is_finished_expression(theirs[0])):
        return False
    return compare.values.is_proportional(_subtract_sides(ours), _subtract_sides(theirs), positive=False)


def _is_named_value(sides: Sequence[str]) -> bool:
    """Whether the last side of an equation is the value of the first: of one name, or of steps without names."""
    return is_single_name(sides[0]) or (len(sides) > 2 and not any(map(_NAME.search, sides[1:-1])))


def _subtract_sides(sides: Sequence[str]) -> str:
    return f"({sides[0]}) - ({sides[1]})"


INTEGER_DOMAIN = "Z"
_QUANTIFIER = re.compile(
    r"\s*,?\s*(?:\\text\{\s*,?\s*(?:where|for|with)[^{}]*\}\s*)?(?P<letter>[A-Za-z])\s*(?:\\in(?![A-Za-z])\s*"
    r"\\mathbb\s*\{?\s*(?P<domain>[ZNQR]\s*\}?\s*(?:[\^_]\{[^{}]*\})?)|\\text\{\s*(?:is )?(?:an|any) integer\s*\})\s*$"
)
_BUILDER = re.compile(r"\\\{(.+?)(?:\\mid|\||:)(.+)\\\}", re.DOTALL)
_SHIFTS = ("{}", "(-{})", "({}+1)", "({}-1)", "(1-{})", "(-1-{})")
"""Ways to count the same integers."""


def split_quantifier(text: str) -> tuple[str, str, str]:
    r"""Return a text without the domain of its letter, the letter, and the domain; the text alone if it names none.

    Example:
        >>> split_quantifier(r"x = 2k\pi, k \in \mathbb{Z}"), split_quantifier("x = 2")
        (('x = 2k\\pi', 'k', 'Z'), ('x = 2', '', ''))

    """
    if builder := _BUILDER.fullmatch(text):
        text = f"{builder[1].strip()}, {builder[2].strip()}"
    match = _QUANTIFIER.search(text)
    if match is None or not text[: match.start()].strip():
        return text, "", ""
    return text[: match.start()].strip(), match["letter"], re.sub(r"[\s{}]", "", match["domain"] or INTEGER_DOMAIN)


def is_family(reference: str) -> bool:
    """Whether a reference is values for every number of a kind."""
    return bool(split_quantifier(reference)[1])


def is_same_family(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same values for every number of the same kind, however it calls and counts these."""
    (ours, our_letter, our_domain), (theirs, letter, domain) = map(split_quantifier, (answer, reference))
    if our_domain != domain or (our_letter != letter and re.search(rf"(?<![A-Za-z\\]){letter}", ours)):
        return False
    our_names, our_values = _split_names_from_values(ours)
    names, values = _split_names_from_values(theirs)
    if our_names and names and our_names != names:
        return False
    shifts = [shift.format(letter) for shift in (_SHIFTS if domain == INTEGER_DOMAIN else _SHIFTS[:1])]
    return has_matching_items(
        our_values,
        values,
        lambda our, their: any(compare.is_equal(rename_letters(our, {our_letter: shift}), their) for shift in shifts),
    )


def _split_names_from_values(text: str) -> tuple[set[str], list[str]]:
    """Return the names in ``x = 2k, x = 3k``, and the values."""
    sides = [split_equation_sides(part) for part in split_list_items(text)]
    return {side for equation in sides for side in equation[:-1]}, [equation[-1] for equation in sides]
