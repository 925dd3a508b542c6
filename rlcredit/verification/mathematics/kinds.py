r"""What it means that an answer equals its reference, by the kind of thing that the reference is.

:data:`KINDS` lists the kinds in the order in which a reference is tried; the first that describes it compares.
Containers compare their elements by the same rules. What is left in the end are single values.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rlcredit.verification.mathematics import characters, quantities, ranges, relations, sets, tables, texts
from rlcredit.verification.mathematics.comparison import Equality, Values
from rlcredit.verification.mathematics.notation import normal_form
from rlcredit.verification.mathematics.structure import squeeze_blanks


@dataclass(frozen=True)
class Kind:
    """A kind of reference.

    Attributes:
        name: for people.
        describes: whether a reference in normal form is of this kind.
        is_same: whether an answer in normal form equals a reference of this kind.

    """

    name: str
    describes: Callable[[str], bool]
    is_same: Callable[[str, str, Equality], bool]


KINDS: tuple[Kind, ...] = (
    Kind("option letter", characters.is_letter, characters.is_same_letter),
    Kind("date, time, score, ratio or range", characters.is_uncomputed, characters.has_same_characters),
    Kind("number in another base", characters.is_based, characters.has_same_digits),
    Kind("congruence", relations.is_congruence, relations.is_same_congruence),
    Kind("matrix or function by cases", tables.is_table, tables.is_same_table),
    Kind("sequence that goes on", sets.has_dots, sets.is_same_sequence),
    Kind("equation", relations.is_equation, relations.is_same_equation),
    Kind("interval, inequality or union", ranges.is_range, ranges.is_same_range),
    Kind("set", sets.is_set, sets.is_same_set),
    Kind("tuple", sets.is_tuple, sets.is_same_tuple),
    Kind("number, or value with a unit", quantities.is_quantity, quantities.is_same_quantity),
    Kind("text", texts.is_text, texts.is_same_text),
    Kind("list", sets.is_list, sets.is_same_list),
    Kind("inequality of several names", relations.is_inequality, relations.is_same_inequality),
    Kind("any other value", bool, quantities.is_same_quantity),
)


@dataclass(frozen=True)
class ByKind:
    """Equality by the kind of thing that a reference is.

    Attributes:
        values: comparison of what is left of both in the end.

    """

    values: Values

    def equal(self, answer: str, reference: str) -> bool:
        """Whether an answer equals its reference, both in normal form.

        Raises:
            UndecidedError: only computer algebra can tell, and ``values`` asks none.
            UnreadableReferenceError: the reference is nothing that can be compared.

        """
        if not answer or not reference:
            return False
        if squeeze_blanks(answer) == squeeze_blanks(reference):
            return True
        kind = next(kind for kind in KINDS if kind.describes(reference))
        return kind.is_same(answer, reference, self)


def is_equal(answer: str, reference: str, values: Values) -> bool:
    """Whether an answer equals a reference, as they are written.

    Args:
        answer: as the completion states it.
        reference: as the data set writes it.
        values: comparison of what is left of both in the end.

    Raises:
        UndecidedError: only computer algebra can tell, and ``values`` asks none.
        UnreadableReferenceError: the reference is nothing that can be compared.

    """
    return ByKind(values).equal(normal_form(answer), normal_form(reference))
