"""Numbers and other values, with or without a unit."""

import re
from fractions import Fraction

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.named_values import read_chain_value
from rlcredit.verification.mathematics.numbers import read_normal_rational
from rlcredit.verification.mathematics.units import DEGREES, PERCENT, Quantity, read_quantity

_LETTERS = re.compile(r"(?<![A-Za-z\\])[A-Za-z]|\\(?:alpha|beta|gamma|delta|theta|lambda|mu|rho|sigma|phi|omega)")
_ALIKE = {"lb": "gbp"}
"""Units of one name: a pound is a weight and a coin."""


def is_quantity(reference: str) -> bool:
    """Whether a reference is a number, or a value with a unit."""
    quantity = read_quantity(reference)
    return bool(quantity.unit) or quantity.factor != 1 or read_normal_rational(reference) is not None


def is_same_quantity(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer is the same number of the same unit; where one of the two names none, it is not checked.

    Five per cent is 1/20, not 5. Only where the reference is a percentage does the question name the unit: there 50
    answers ``50%`` as 0.5 does.
    """
    theirs = read_quantity(reference)
    answer = read_chain_value(answer, compare)
    ours = read_quantity(answer)
    named = read_normal_rational(reference) is None and _LETTERS.search(reference) is not None
    in_radians = ours.unit == DEGREES and r"\pi" in reference
    if ours.unit and not theirs.unit and (named or in_radians):
        # An upright letter is a unit beside a constant, and a name in a reference that has names.
        ours = Quantity(answer)
    if theirs.unit == DEGREES and (ours.unit == "rad" or (not ours.unit and r"\pi" in ours.value)):
        return compare.values.is_equal(ours.value, rf"\frac{{{theirs.value} \pi}}{{180}}")
    if not ours.unit and len(theirs.unit) == 1:
        # "5 m" is a product of two letters but beside a reference in metres.
        ours = ours._replace(value=re.sub(rf"(?<=[\d}}\s])\s*{theirs.unit}$", "", ours.value))
    units = [_ALIKE.get(unit, unit) for unit in (ours.unit, theirs.unit)]
    if all(units) and units[0] != units[1] and PERCENT not in units:
        return False
    factors = [ours.factor / theirs.factor]
    if theirs.unit == PERCENT and not ours.unit and ours.factor == 1:
        factors.append(Fraction(1))
    return any(compare.values.is_equal(ours.value, theirs.value, factor) for factor in factors)
