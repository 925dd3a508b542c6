"""Numbers and other values, with or without a unit."""

import re
from fractions import Fraction

from rlcredit.verification.mathematics.comparison import Comparison
from rlcredit.verification.mathematics.names import without_names
from rlcredit.verification.mathematics.numbers import number_in_normal_form
from rlcredit.verification.mathematics.units import PERCENT, Quantity, read_quantity


def is_quantity(reference: str) -> bool:
    """Whether a reference is a number, or a value with a unit."""
    quantity = read_quantity(reference)
    return bool(quantity.unit) or quantity.factor != 1 or number_in_normal_form(reference) is not None


def is_same_quantity(answer: str, reference: str, compare: Comparison) -> bool:
    """Whether an answer is the same number of the same unit; where one of the two names none, it is not checked.

    Five per cent is 1/20, not 5. Only where the reference is a percentage does the question name the unit: there 50
    answers ``50%`` as 0.5 does.
    """
    theirs = read_quantity(reference)
    answer = without_names(answer, compare)
    ours = read_quantity(answer)
    if ours.unit and not theirs.unit and number_in_normal_form(reference) is None:
        # An upright letter is a unit beside a number, and a name in a reference that has it.
        ours = Quantity(answer)
    if not ours.unit and len(theirs.unit) == 1:
        # "5 m" is a product of two letters but beside a reference in metres.
        ours = ours._replace(value=re.sub(rf"(?<=[\d}}\s])\s*{theirs.unit}$", "", ours.value))
    if ours.unit and theirs.unit and ours.unit != theirs.unit and PERCENT not in (ours.unit, theirs.unit):
        return False
    factors = [ours.factor / theirs.factor]
    if theirs.unit == PERCENT and not ours.unit and ours.factor == 1:
        factors.append(Fraction(1))
    return any(compare.values.equal(ours.value, theirs.value, factor) for factor in factors)
