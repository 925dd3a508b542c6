r"""Equations, inequalities, congruences."""

import re
from collections.abc import Sequence

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.expressions import is_finished_expression
from rlcredit.verification.mathematics.named_values import is_value_name, split_equation_sides
from rlcredit.verification.mathematics.ranges import FLIPPED, ORDER
from rlcredit.verification.mathematics.structure import split_outside_brackets, squeeze_blanks

_FUNCTION = re.compile(r"[fghy]\s*\(\s*x\s*\)")


def is_equation(reference: str) -> bool:
    """Whether a reference has an equality sign, or several: a name with its value, or a curve."""
    both = split_equation_sides(reference)
    return len(both) > 1 and all(both) and len(split_outside_brackets(reference, ",;")) == 1


def is_same_equation(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer is the value that a reference names, or an equation with the same solutions.

    Of a reference of several steps (``i^5 = i^4 i = i``) the last one counts.
    """
    theirs, ours = split_equation_sides(reference), split_equation_sides(answer)
    if theirs[0] == "y" and _FUNCTION.fullmatch(ours[0]) and ours[0] not in reference:
        ours[0] = "y"
    if len(ours) == 1:
        return (is_value_name(theirs[0]) or len(theirs) > 2) and compare.is_equal(answer, theirs[-1])
    if not all(ours):
        return False
    if squeeze_blanks(ours[0]) == squeeze_blanks(theirs[0]):
        return compare.is_equal(ours[-1], theirs[-1]) and all(compare.is_equal(step, ours[-1]) for step in ours[1:-1])
    if len(ours) != 2 or len(theirs) != 2:
        return False
    return compare.values.is_proportional(_subtract_sides(ours), _subtract_sides(theirs), positive=False)


def _subtract_sides(both: Sequence[str]) -> str:
    return f"({both[0]}) - ({both[1]})"


def is_inequality(reference: str) -> bool:
    """Whether a reference compares two sides."""
    return ORDER.search(reference) is not None


def is_same_inequality(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer is the same inequality, multiplied by whatever keeps its solutions."""
    ours, theirs = ([side.strip() for side in ORDER.split(text)] for text in (answer, reference))
    if len(ours) != 3 or len(theirs) != 3 or not all(ours):
        return False
    if ours[1] != theirs[1]:
        ours = [ours[2], FLIPPED.get(ours[1], ours[1]), ours[0]]
    if ours[1] != theirs[1]:
        return False
    return compare.values.is_proportional(
        _subtract_sides(ours[::2]), _subtract_sides(theirs[::2]), positive=ours[1] != r"\ne"
    )


_MODULUS = re.compile(r"(.*?)\s*(?:\(\s*)?\\(?:pmod|bmod|mod)\s*(?:\{([^{}]+)\}|(\w+)|\(([^()]+)\))\s*\)?", re.DOTALL)


def _read_congruence(text: str) -> tuple[str, str, str] | None:
    """Return what is congruent (nothing if that is not said), to what, and the modulus."""
    found = _MODULUS.fullmatch(text)
    parts = [part.strip() for part in re.split(r"\\equiv(?![A-Za-z])|=", found[1])] if found else []
    if found is None or len(parts) > 2 or not all(is_finished_expression(part) for part in parts):
        return None
    return "".join(parts[:-1]), parts[-1], next(filter(None, found.groups()[1:])).strip()


def is_congruence(reference: str) -> bool:
    """Whether a reference is a residue with its modulus."""
    return _read_congruence(reference) is not None


def is_same_congruence(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same modulus, and a residue that differs by a multiple of it."""
    ours, theirs = _read_congruence(answer), _read_congruence(reference)
    if ours is None or theirs is None or not compare.is_equal(ours[2], theirs[2]):
        return False
    if ours[0] and theirs[0] and not compare.is_equal(ours[0], theirs[0]):
        return False
    whole = [re.fullmatch(r"-?\d{1,20}", text) for text in (ours[1], theirs[1], theirs[2])]
    if all(whole) and int(theirs[2]):
        return (int(ours[1]) - int(theirs[1])) % int(theirs[2]) == 0
    return compare.is_equal(ours[1], theirs[1])
