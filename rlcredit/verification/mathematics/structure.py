r"""Brackets, separators and lists."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from rlcredit.verification.mathematics.equality import AnswerEquality

ItemType = TypeVar("ItemType")

_OPENING = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", r"\langle": r"\rangle"}
_TOKEN = re.compile(r"\\begin\s*\{[a-z*]+\}|\\end\s*\{[a-z*]+\}|\\text\{[^{}]*\}|\\[A-Za-z]+|\\.|.", re.DOTALL)


def squeeze_blanks(text: str) -> str:
    r"""Return a text without the blanks and marks of texts that change nothing.

    Example:
        >>> squeeze_blanks("( 1, 2 )"), squeeze_blanks("3 4"), squeeze_blanks(r"1-\text{m}")
        ('(1,2)', '3 4', '1-m')

    """
    text = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text)
    return re.sub(r"(?<![A-Za-z0-9.]) | (?![A-Za-z0-9.])|^ +| +$", "", re.sub(r"\s+", " ", text))


def split_outside_brackets(text: str, separators: Iterable[str]) -> list[str]:
    r"""Split a text at separators that stand in no bracket.

    Example:
        >>> split_outside_brackets(r"(1, 2), \{3, 4\}, 5", ","), split_outside_brackets(r"[1,2) \cup (3,4]", [r"\cup"])
        (['(1, 2)', '\\{3, 4\\}', '5'], ['[1,2)', '(3,4]'])

    """
    marks = set(separators)
    parts, part, depth = list[str](), "", 0
    for token in _TOKEN.findall(text):
        if token in ("(", "[", "{", r"\{", r"\langle") or token.startswith(r"\begin"):
            depth += 1
        elif token in (")", "]", "}", r"\}", r"\rangle") or token.startswith(r"\end"):
            depth -= 1
        if depth == 0 and token in marks:
            parts.append(part.strip())
            part = ""
        else:
            part += token
    return [*parts, part.strip()]


def read_brackets(text: str) -> tuple[str, str, str] | None:
    r"""Return the opening bracket of a text that one pair of brackets holds, what is in it, and the closing bracket.

    Example:
        >>> read_brackets("(0, 1]"), read_brackets("(1)(2)"), read_brackets(r"\{1\}")
        (('(', '0, 1', ']'), None, ('\\{', '1', '\\}'))

    """
    tokens = _TOKEN.findall(text)
    if len(tokens) < 2 or tokens[0] not in _OPENING or tokens[-1] not in _OPENING.values():
        return None
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token in _OPENING) - (token in _OPENING.values())
        if depth == 0 and place < len(tokens) - 1:
            return None
    return (tokens[0], "".join(tokens[1:-1]).strip(), tokens[-1]) if depth == 0 else None


AND_WORDS = (r"\text{and}", r"\text{, and}")
OR_WORDS = (r"\text{or}", r"\text{, or}")
LIST_MARKS = (",", ";", *AND_WORDS, *OR_WORDS)
_BARE_JOINT = re.compile(r"(?<![A-Za-z\\{])(and|or)(?![A-Za-z}])")


def mark_conjunctions(text: str) -> str:
    r"""Return a text in which ``and`` and ``or`` are LaTeX texts, however they were written."""
    return _BARE_JOINT.sub(r"\\text{\1}", text)


def split_list_items(text: str) -> list[str]:
    r"""Return the elements of a list: what stands between commas, semicolons, ``and`` or ``or``; ``\pm`` makes two.

    Example:
        >>> split_list_items(r"1, 2 \text{and} 3"), split_list_items(r"1 \pm \sqrt{2}")
        (['1', '2', '3'], ['1 + \\sqrt{2}', '1 - \\sqrt{2}'])

    """
    parts = split_outside_brackets(mark_conjunctions(text), LIST_MARKS)
    if len(parts) > 1:
        # "1, 2, and 3" has nothing between its last comma and its joint.
        parts = [part for place, part in enumerate(parts) if part or place in (0, len(parts) - 1)]
    return [alternative for part in parts for alternative in expand_plus_minus(part)]


def expand_plus_minus(text: str) -> list[str]:
    r"""Return the two values of a text with one ``\pm`` in it; any other text as it is."""
    if text.count(r"\pm") + text.count(r"\mp") != 1:
        return [text]
    return [re.sub(r"^\s*(?:\+|(-))\s*", r"\1", re.sub(r"\\[pm][mp](?![A-Za-z])", sign, text)) for sign in "+-"]


def has_matching_items(
    answers: Sequence[ItemType], references: Sequence[ItemType], is_same: Callable[[ItemType, ItemType], bool]
) -> bool:
    """Whether each of some things has one that is the same, in whatever order."""
    if len(answers) != len(references):
        return False
    remainder = list(answers)
    for reference in references:
        place = next((place for place, answer in enumerate(remainder) if is_same(answer, reference)), None)
        if place is None:
            return False
        remainder.pop(place)
    return True


def has_same_items(answers: Sequence[str], references: Sequence[str], compare: AnswerEquality) -> bool:
    """Whether two collections hold the same elements, in whatever order."""
    return has_matching_items(answers, references, compare.is_equal)


def has_same_items_in_order(answers: Sequence[str], references: Sequence[str], compare: AnswerEquality) -> bool:
    """Whether two sequences hold the same elements in the same order."""
    return len(answers) == len(references) and all(
        compare.is_equal(answer, reference) for answer, reference in zip(answers, references, strict=True)
    )
