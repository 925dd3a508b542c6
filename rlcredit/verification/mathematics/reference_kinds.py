r"""Equality of an answer and its reference, by the kind of thing that the reference is.

:data:`REFERENCE_KINDS` lists the kinds in the order in which a reference is tried; the first that describes it
compares. Containers compare their elements by the same rules. What is left in the end are single values.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rlcredit.verification.mathematics import (
    cases,
    dates,
    expressions,
    integers,
    matrices,
    option_letters,
    quantities,
    ranges,
    relations,
    sets,
    text_kinds,
)
from rlcredit.verification.mathematics.equality import AnswerEquality, ValueEquality
from rlcredit.verification.mathematics.notation import write_normal_form
from rlcredit.verification.mathematics.structure import squeeze_blanks


@dataclass(frozen=True)
class ReferenceKind:
    """A kind of reference.

    Attributes:
        name: Name for people.
        describes: Whether a reference in normal form is of this kind.
        is_same: Whether an answer in normal form equals a reference of this kind.

    """

    name: str
    describes: Callable[[str], bool]
    is_same: Callable[[str, str, AnswerEquality], bool]


REFERENCE_KINDS: tuple[ReferenceKind, ...] = (
    ReferenceKind("option letter", option_letters.is_option_letter, option_letters.is_same_option_letter),
    ReferenceKind("several option letters", option_letters.is_set_of_letters, option_letters.is_same_set_of_letters),
    ReferenceKind("date, time, score, ratio or range", dates.is_date_or_score, dates.is_same_date_or_score),
    ReferenceKind("absence of an answer", text_kinds.is_absence, text_kinds.is_same_absence),
    ReferenceKind("number in another base", integers.is_based_number, integers.has_same_digits),
    ReferenceKind("congruence", integers.is_congruence, integers.is_same_congruence),
    ReferenceKind("matrix", matrices.is_matrix, matrices.is_same_matrix),
    ReferenceKind("function by cases", cases.is_function_by_cases, cases.is_same_function_by_cases),
    ReferenceKind("system of equations", cases.is_system, cases.is_same_system),
    ReferenceKind("continued fraction", integers.is_continued_fraction, integers.is_same_continued_fraction),
    ReferenceKind("sequence that goes on", sets.has_ellipsis, sets.is_same_sequence),
    ReferenceKind("family of values", relations.is_family, relations.is_same_family),
    ReferenceKind("named values", sets.has_named_values, sets.is_same_assignment),
    ReferenceKind("equation", relations.is_equation, relations.is_same_equation),
    ReferenceKind("interval, inequality or union", ranges.is_number_range, ranges.is_same_number_range),
    ReferenceKind("set", sets.is_finite_set, sets.is_same_set),
    ReferenceKind("tuple", sets.is_bracketed_tuple, sets.is_same_tuple),
    ReferenceKind("number, or value with a unit", quantities.is_quantity, quantities.is_same_quantity),
    ReferenceKind("product of letters", expressions.is_product_of_letters, quantities.is_same_quantity),
    ReferenceKind("text", text_kinds.is_text_reference, text_kinds.is_same_text),
    ReferenceKind("list", sets.is_bare_list, sets.is_same_list),
    ReferenceKind("inequality of several names", ranges.is_inequality, ranges.is_same_inequality),
    ReferenceKind("any other value", bool, quantities.is_same_quantity),
)


@dataclass(frozen=True)
class KindEquality:
    """Equality by the kind of thing that a reference is.

    Attributes:
        values: Function that compares what is left of both in the end.

    """

    values: ValueEquality

    def is_equal(self, answer: str, reference: str) -> bool:
        """Whether an answer equals its reference, both in normal form.

        Raises:
            UndecidedError: only computer algebra can tell, and ``values`` asks none.
            UnreadableReferenceError: the reference is nothing that can be compared.

        """
        if not answer or not reference:
            return False
        if squeeze_blanks(answer) == squeeze_blanks(reference):
            return True
        kind = next(kind for kind in REFERENCE_KINDS if kind.describes(reference))
        return kind.is_same(answer, reference, self)


def is_equal_answer(answer: str, reference: str, values: ValueEquality) -> bool:
    """Whether an answer equals a reference, both as written.

    Args:
        answer: Answer as the completion states it.
        reference: Reference answer as the data set writes it.
        values: Function that compares what is left of both in the end.

    Raises:
        UndecidedError: only computer algebra can tell, and ``values`` asks none.
        UnreadableReferenceError: the reference is nothing that can be compared.

    """
    return KindEquality(values).is_equal(write_normal_form(answer), write_normal_form(reference))
