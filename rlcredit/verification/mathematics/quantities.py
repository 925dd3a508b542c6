"""Numbers and other values, with or without a unit."""

import re
from fractions import Fraction

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.named_values import read_chain_value
from rlcredit.verification.mathematics.numbers import read_normal_rational
from rlcredit.verification.mathematics.units import DEGREE_UNIT, PERCENT_UNIT, Quantity, read_quantity

_LETTERS = re.compile(r"(?<![A-Za-z\\])[A-Za-z]|\\(?:alpha|beta|gamma|delta|theta|lambda|mu|rho|sigma|phi|omega)")
_ALIKE = {"lb": "gbp"}
"""Units of one name: a pound is a weight and a coin."""

_SIZES = {
    "money": {"dollar": Fraction(100), "cent": Fraction(1)},
    "time": {"week": 604_800, "d": 86_400, "h": 3600, "min": 60, "s": 1},
    "length": {"ft": 12, "in": 1},
}
"""Units that amounts are counted in together, with their sizes: ``2 hours 30 minutes``, ``3 dollars and 50 cents``."""

_PARTS = re.compile(r"(?:(?<=[A-Za-z.}]),?\s*(?:and\s+)?|\s+and\s+)(?=\d|\\\$)")
_SUM = re.compile(
    r"(?:\d(?!\s*[-+]\s*\\frac)|[)\]}!]|\\(?!cdot|times|div)[a-z]+|(?<![\\A-Za-z])[A-Za-z])\s*[-+]|\\[pm][mp](?![a-z])"
)
_CONSTANT_LETTERS = frozenset("eiEI")


def is_quantity(reference: str) -> bool:
    """Whether a reference is a number, or a value with a unit."""
    quantity = read_amount(reference)
    return bool(quantity.unit) or quantity.factor != 1 or read_normal_rational(quantity.value) is not None


def is_same_quantity(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer is the same number of the same unit; where one of the two names none, it is not checked.

    Five per cent is 1/20, not 5. Only where the reference is a percentage does the question name the unit: there 50
    answers ``50%`` as 0.5 does.
    """
    theirs = read_amount(reference)
    answer = read_chain_value(answer, compare)
    ours = read_amount(answer)
    has_names = read_normal_rational(reference) is None and _LETTERS.search(reference) is not None
    in_radians = ours.unit == DEGREE_UNIT and r"\pi" in reference
    if ours.unit and not theirs.unit and (has_names or in_radians):
        # An upright letter is a unit beside a constant, and a name in a reference that has names.
        ours = Quantity(answer)
    if theirs.unit == DEGREE_UNIT and (ours.unit == "rad" or (not ours.unit and r"\pi" in ours.value)):
        return compare.values.is_equal(ours.value, rf"\frac{{{theirs.value} \pi}}{{180}}")
    if not ours.unit and len(theirs.unit) == 1:
        # "5 m" is a product of two letters but beside a reference in metres.
        ours = ours._replace(value=re.sub(rf"(?<=[\d}}\s])\s*{theirs.unit}$", "", ours.value))
    if _is_unevaluated(ours.value, theirs.value):
        return False
    units = [_ALIKE.get(unit, unit) for unit in (ours.unit, theirs.unit)]
    sizes = next(filter(set(units).issubset, _SIZES.values()), {})
    if all(units) and units[0] != units[1] and PERCENT_UNIT not in units and not sizes:
        return False
    factors = [ours.factor / theirs.factor * Fraction(sizes.get(units[0], 1)) / sizes.get(units[1], 1)]
    if theirs.unit == PERCENT_UNIT and not ours.unit and ours.factor == 1:
        factors.append(Fraction(1))
    return any(compare.values.is_equal(ours.value, theirs.value, factor) for factor in factors)


def read_amount(text: str) -> Quantity:
    r"""Split a text in normal form into its value and its unit; an amount in several units is counted in the first.

    Example:
        >>> read_amount(r"2 \text{hours } 30 \text{ minutes}"), read_amount("3 dollars and 50 cents").unit
        (Quantity(value='5/2', factor=Fraction(1, 1), unit='h'), 'dollar')
        >>> read_amount("5 apples and 3 pears").value
        '5 apples and 3 pears'

    """
    words = re.sub(r",?\s+and\}", "}", re.sub(r"\\text\{,? ?and\}", " ", text))
    parts = [read_quantity(part.strip()) for part in _PARTS.split(words)]
    sizes = next(filter({part.unit for part in parts}.issubset, _SIZES.values()), {})
    part_sizes = [sizes.get(part.unit, 0) for part in parts]
    values = [read_normal_rational(part.value) for part in parts]
    if len(parts) < 2 or not all(part_sizes) or None in values or part_sizes != sorted(set(part_sizes), reverse=True):
        return read_quantity(text)
    total = sum((value or 0) * part.factor * size for value, part, size in zip(values, parts, part_sizes, strict=True))
    return Quantity(str(Fraction(total) / part_sizes[0]), unit=parts[0].unit)


def _is_unevaluated(answer: str, reference: str) -> bool:
    """Whether an answer is a sum, a difference or has names where the reference is a number: the question once more."""
    if read_normal_rational(reference) is None or read_normal_rational(answer) is not None:
        return False
    return _SUM.search(answer) is not None or not _CONSTANT_LETTERS.issuperset(_LETTERS.findall(answer))
