r"""Sets, tuples, lists, and sequences that go on."""

import re
from collections.abc import Sequence

from rlcredit.verification.mathematics.equality import AnswerEquality
from rlcredit.verification.mathematics.named_values import drop_leading_name, is_value_name, split_equation_sides
from rlcredit.verification.mathematics.ranges import MEMBER, ORDER, is_same_number_range
from rlcredit.verification.mathematics.structure import (
    BOTH,
    has_same_items,
    has_same_items_in_order,
    mark_conjunctions,
    read_brackets,
    split_list_items,
    split_outside_brackets,
)


def is_finite_set(reference: str) -> bool:
    """Whether a reference is a finite set in braces, or the empty set."""
    return _is_empty_set(reference) or (read_brackets(reference) or ("",))[0] == r"\{"


def _is_empty_set(text: str) -> bool:
    return re.fullmatch(r"\\emptyset|\\\{\s*\\\}|(?:\\text\{)?(?:the )?empty set\}?", text.strip()) is not None


def is_same_set(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same elements; a list has them too, a tuple has an order."""
    answer = _drop_membership(drop_leading_name(answer))
    if _is_empty_set(answer) or _is_empty_set(reference):
        return _is_empty_set(answer) and _is_empty_set(reference)
    brackets = read_brackets(answer)
    if _has_two_names(answer) or (brackets is not None and brackets[0] != r"\{"):
        return False
    ours, theirs = (split_list_items(_strip_outer_brackets(text)) for text in (answer, reference))
    if brackets is None and len(ours) < 2 and len(theirs) > 1:
        return False
    return has_same_items(ours, theirs, compare)


def _drop_membership(text: str) -> str:
    r"""Return the set in ``x \in {1, 2}``; any other text as it is."""
    member = MEMBER.fullmatch(text)
    return member[1].strip() if member else text


def is_bracketed_tuple(reference: str) -> bool:
    """Whether a reference is a sequence in brackets: a point, a vector, an open interval."""
    brackets = read_brackets(reference)
    return brackets is not None and brackets[0] != "{" and len(split_outside_brackets(brackets[1], ",;")) > 1


def is_same_tuple(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same elements in the same order, in the same brackets or with a name each."""
    expected = read_brackets(reference)
    assert expected is not None
    theirs = split_outside_brackets(expected[1], ",;")
    if ORDER.search(answer) or MEMBER.fullmatch(answer):
        return is_same_number_range(answer, reference, compare)
    named = _pair_names_with_values(answer)
    answer = re.sub(r"^(?:[A-Z]|\\text\{[A-Z]\})\s*(?=\()", "", drop_leading_name(answer))
    found = read_brackets(answer)
    if named or found is None or len(split_outside_brackets(answer, ",;")) > 1:
        parts = split_outside_brackets(mark_conjunctions(answer), [",", ";", *BOTH])
        return has_same_items_in_order(_order_by_name(named or [part for part in parts if part]), theirs, compare)
    rounded = {"(", r"\langle"}
    same = found[0] == expected[0] or {found[0], expected[0]} <= rounded
    same &= found[2] == expected[2] or {found[2], expected[2]} <= {")", r"\rangle"}
    return same and has_same_items_in_order(split_outside_brackets(found[1], ",;"), theirs, compare)


def _pair_names_with_values(answer: str) -> list[str]:
    """Return ``(y, x) = (3, 4)`` as ``y=3, x=4``; nothing for any other text."""
    both = [read_brackets(side) for side in split_equation_sides(answer)]
    if len(both) != 2 or both[0] is None or both[1] is None or (both[1][0], both[1][2]) != ("(", ")"):
        return []
    names, values = (split_outside_brackets(side[1], ",;") for side in both if side)
    fit = is_value_name(split_equation_sides(answer)[0]) and len(names) == len(values)
    return [f"{name}={value}" for name, value in zip(names, values, strict=True)] if fit else []


_ALPHABETS = ("abcdefgh", "klmn", "pqrst", "uvwxyz")


def _order_by_name(parts: Sequence[str]) -> list[str]:
    """Return the values of ``y=4, x=3`` by the alphabet, those of ``m=3, b=4`` as they stand; other parts as they are.

    Two values of one name are alternatives, and no sequence.
    """
    pairs = [split_equation_sides(part) for part in parts]
    if not all(len(pair) == 2 and is_value_name(pair[0]) for pair in pairs):
        return list(parts)
    names = [pair[0] for pair in pairs]
    if len(set(names)) < len(names):
        return []
    first = {name[0] for name in names}
    alike = len(first) == 1 or any(first <= set(letters) for letters in _ALPHABETS)
    return [pair[1] for pair in (sorted(pairs, key=_build_index_key) if alike else pairs)]


def _build_index_key(pair: Sequence[str]) -> tuple[str, int, str]:
    number = re.search(r"\d+", pair[0])
    return (pair[0][0], int(number[0]) if number else 0, pair[0])


def _has_two_names(answer: str) -> bool:
    """Whether a list gives values to names of two letters: ``x=1, y=2`` are no two values of one name."""
    pairs = [split_equation_sides(part) for part in split_list_items(answer)]
    return len({pair[0].strip("\\")[:1] for pair in pairs if len(pair) == 2}) > 1


def is_bare_list(reference: str) -> bool:
    """Whether a reference is several values without brackets."""
    return len(split_list_items(reference)) > 1


def is_same_list(answer: str, reference: str, compare: AnswerEquality) -> bool:
    """Whether an answer has the same elements, in whatever order; a set has them too."""
    answer = _drop_membership(drop_leading_name(answer))
    found = read_brackets(answer)
    if found is not None:
        if found[0] != r"\{":
            return False
        answer = found[1]
    ours, theirs = split_list_items(answer), split_list_items(reference)
    if _has_two_names(answer):
        return has_same_items_in_order(ours, theirs, compare)
    return all(ours) and has_same_items(ours, theirs, compare)


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
    return [part for part in split_outside_brackets(_strip_outer_brackets(text), ",") if part]


def _strip_outer_brackets(text: str) -> str:
    brackets = read_brackets(text)
    return text if brackets is None else brackets[1]
