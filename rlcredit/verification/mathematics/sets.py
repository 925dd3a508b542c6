r"""Sets, tuples, lists, named values, and sequences that go on."""

import re

from rlcredit.verification.mathematics.cases import write_system
from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.matrices import is_same_vector, read_unit_vectors, read_vector
from rlcredit.verification.mathematics.named_values import (
    Assignment,
    drop_leading_name,
    list_named_values,
    read_assignments,
    write_tuples,
)
from rlcredit.verification.mathematics.ranges import is_number_range, is_same_number_range
from rlcredit.verification.mathematics.structure import (
    AND_WORDS,
    has_matching_items,
    has_same_items,
    has_same_items_in_order,
    mark_conjunctions,
    read_brackets,
    split_list_items,
    split_outside_brackets,
)


def is_finite_set(reference: str) -> bool:
    """Whether a reference is a finite set in braces; the empty set as a word or sign is an absence of an answer."""
    return (read_brackets(reference) or ("",))[0] == r"\{"


def _is_empty_set(text: str) -> bool:
    return re.fullmatch(r"\\emptyset|\\\{\s*\\\}|(?:\\text\{)?(?:the )?empty set\}?", text.strip()) is not None


def is_same_set(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same elements; a list has them too, a tuple has an order."""
    rows = list_named_values(answer)
    answer = drop_leading_name(answer)
    if _is_empty_set(answer) or _is_empty_set(reference):
        return _is_empty_set(answer) and _is_empty_set(reference)
    brackets = read_brackets(answer)
    theirs = split_list_items(_strip_outer_brackets(reference))
    if len(rows) > 1 or (rows and brackets is None):
        return has_same_items(write_tuples(rows), theirs, compare)
    if brackets is not None and brackets[0] != r"\{":
        return False
    ours = split_list_items(_strip_outer_brackets(answer))
    return (brackets is not None or len(ours) > 1 or len(theirs) == 1) and has_same_items(ours, theirs, compare)


def is_bracketed_tuple(reference: str) -> bool:
    """Whether a reference is a sequence in brackets, a point, a vector, an open interval; or a sum of unit vectors."""
    brackets = read_brackets(reference)
    has_several = brackets is not None and brackets[0] != "{" and len(split_outside_brackets(brackets[1], ",;")) > 1
    return has_several or bool(read_unit_vectors(reference))


_LABEL = re.compile(
    r"^(?:[A-Z]|\\text\{\s*[A-Z]\s*\}"
    r"|\\text\{\s*(?i:(?:the )?(?:point|vector|coordinates|(?:ordered )?pair)(?: [A-Z])?(?: is| are)?)\s*\})"
    r"\s*(?=\(|\\langle)"
)


def is_same_tuple(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same elements in the same order: in the same brackets, with names, or as a vector."""
    if is_number_range(answer):
        return is_same_number_range(answer, reference, compare)
    rows, theirs = list_named_values(answer), _split_elements(reference)
    if len(rows) > 1 or (rows and len(rows[0]) > 1):
        return len(rows) == 1 and has_same_items_in_order(rows[0], read_vector(reference) or theirs, compare)
    answer = _LABEL.sub("", drop_leading_name(answer))
    if read_vector(reference) and read_vector(answer):
        return is_same_vector(answer, reference, compare)
    ours, brackets = read_brackets(answer), read_brackets(reference)
    if brackets is None:
        return False
    if ours is None:
        parts = [part for part in split_outside_brackets(mark_conjunctions(answer), [",", ";", *AND_WORDS]) if part]
        return has_same_items_in_order(parts, theirs, compare)
    return ours[::2] == brackets[::2] and has_same_items_in_order(_split_elements(answer), theirs, compare)


def is_bare_list(reference: str) -> bool:
    """Whether a reference is several values without brackets."""
    return len(split_list_items(reference)) > 1


def is_same_list(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same elements, in whatever order; a set has them too."""
    rows, theirs = list_named_values(answer), split_list_items(reference)
    if len(rows) == 1 and len(rows[0]) > 1:
        return has_same_items_in_order(rows[0], theirs, compare)
    answer = ", ".join(write_tuples(rows)) if len(rows) > 1 else drop_leading_name(answer)
    brackets = read_brackets(answer)
    if brackets is not None and brackets[0] != r"\{":
        return False
    ours = split_list_items(brackets[1] if brackets else answer)
    return all(ours) and has_same_items(ours, theirs, compare)


def has_named_values(reference: str) -> bool:
    """Whether a reference names several values, or says that one is among some."""
    assignments = read_assignments(reference)
    return assignments is not None and (len(assignments) != 1 or len(assignments[0]) > 1 or r"\in" in reference)


def is_same_assignment(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer gives the same values to the same names; without names the values, in the names' order."""
    answer = write_system(answer)
    ours, theirs = read_assignments(answer), read_assignments(reference)
    assert theirs is not None
    if ours is not None:
        return has_matching_items(ours, theirs, lambda our, their: _is_same_assignment(our, their, compare))
    rows = list_named_values(reference)
    if len(rows) == 1 and len(rows[0]) > 1:
        return is_same_tuple(answer, write_tuples(rows)[0], compare)
    if len(rows) == 1 and compare.is_equal(answer, rows[0][0]):
        return True
    return is_same_set(answer, rf"\{{{', '.join(write_tuples(rows))}\}}", compare)


def _is_same_assignment(ours: Assignment, theirs: Assignment, compare: AnswerEquality) -> bool:
    return ours.keys() == theirs.keys() and all(compare.is_equal(ours[name], theirs[name]) for name in theirs)


_GOES_ON = r"\ldots"


def has_ellipsis(reference: str) -> bool:
    r"""Whether a reference is a sequence with dots in it: ``1, 2, \ldots, n``."""
    elements = _split_elements(reference)
    return _GOES_ON in elements and len(elements) > 1


def is_same_sequence(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same elements in the same order, and its dots at the same place."""
    ours, theirs = _split_elements(answer), _split_elements(reference)
    return len(ours) == len(theirs) and all(
        our == their if _GOES_ON in (our, their) else compare.is_equal(our, their)
        for our, their in zip(ours, theirs, strict=True)
    )


def _split_elements(text: str) -> list[str]:
    return [part for part in split_outside_brackets(_strip_outer_brackets(text), ",;") if part]


def _strip_outer_brackets(text: str) -> str:
    brackets = read_brackets(text)
    return text if brackets is None else brackets[1]
