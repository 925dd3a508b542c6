"""The accepted answers of a record: a text, a list, or the end of a worked solution."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rlcredit.tasks.record_values import (
    find_type_fault,
    has_column,
    list_columns,
    read_answer_list,
    read_answer_text,
    read_column,
)
from rlcredit.verification.answer_formats import FORMAT_RULES, AnswerFormat, find_final_answer
from rlcredit.verification.mathematics.numbers import read_rational
from rlcredit.verification.verifiers import Verdict, inspect_answer, judge_exactly

ListMeaning = Literal["any", "all"]
"""Meaning of a list in the answer column: each entry is right, or all of them together are."""

_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_COMMA_DECIMAL = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d+)(?![\d,]|\.\d)")
_DECIMAL = re.compile(r"\s*\$?[-+\u2212]?\d*\.\d+\$?\s*")
_NUMBERS = re.compile(r"[$+\-\u2212\d.,\s]+")
_LIKE_COMMA_DECIMAL = re.compile(r"\s*\$?[-+\u2212]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+\$?\s*")


class MissingAnswerError(ValueError):
    """A record that has no answer; the message names place and column."""


class AmbiguousListError(ValueError):
    """A record that lists several answers without a setting of what the list means."""


@dataclass(frozen=True)
class AnswerColumn:
    """How the answers of records are read.

    Args:
        name: Name of the column.
        meaning: Meaning of a list with several entries; such lists are refused if None.
        reference: How a worked solution states its answer; the whole entry is the answer if None.
        decimal_comma: Whether ``3,5`` is 3.5 in this column.

    """

    name: str
    meaning: ListMeaning | None = None
    reference: AnswerFormat | None = None
    decimal_comma: bool = False

    def read_answers(self, record: Mapping[str, Any], location: str) -> tuple[str, ...]:
        """Return the answers of a record, of which a completion must state one.

        Args:
            record: Record of a table.
            location: Place that the record is from, for messages.

        Raises:
            MissingAnswerError: it has none.
            AmbiguousListError: it lists several, and ``meaning`` is None.
            ValueError: what is there can be no answer.

        Example:
            >>> AnswerColumn("a", "any").read_answers({"a": ["0.5", "1/2"]}, "x")
            ('0.5', '1/2')
            >>> AnswerColumn("a", "all").read_answers({"a": ["4", "1,000"]}, "x")
            ('4, 1000',)

        """
        if not has_column(record, self.name):
            raise MissingAnswerError(f"{location}: column `{self.name}` is missing; found {list_columns(record)}.")
        content = read_column(record, self.name)
        fault = find_type_fault(content)
        if fault:
            raise ValueError(f"{location}: column `{self.name}` {fault}.")
        entries = read_answer_list(content)
        texts = [self._read_text(entry) for entry in ([content] if entries is None else entries)]
        answers = [text for text in texts if text is not None]
        if not answers or len(answers) < len(texts):
            raise MissingAnswerError(
                f"{location}: column `{self.name}` must be a non-empty text or a number, got {content!r:.200}."
            )
        statements = [self._find_stated_answer(text, location) for text in answers]
        if entries is None:
            return tuple(statements)
        return self._combine_entries([text.strip() for text in statements], location)

    def _read_text(self, entry: Any) -> str | None:
        text = read_answer_text(entry)
        return write_decimal_points(entry) if text and self.decimal_comma and isinstance(entry, str) else text

    def _find_stated_answer(self, text: str, location: str) -> str:
        if self.reference is None:
            return text
        answer = find_final_answer(text, (self.reference,))
        if answer is None:
            raise MissingAnswerError(
                f"{location}: column `{self.name}` has no {FORMAT_RULES[self.reference].mark} that states its answer."
            )
        return answer

    def _combine_entries(self, entries: list[str], location: str) -> tuple[str, ...]:
        if len(entries) > 1 and self.meaning is None:
            raise AmbiguousListError(
                f"{location}: column `{self.name}` lists {len(entries)} answers, {entries!r:.200}. If each of them is "
                "right, set data.init_args.answers: any; if a completion must state all of them, "
                "set data.init_args.answers: all."
            )
        if self.meaning == "any":
            return tuple(dict.fromkeys(entries))
        if len(entries) == 1:
            return tuple(entries)
        return (", ".join(map(_drop_thousands_commas, entries)),)


def _drop_thousands_commas(entry: str) -> str:
    """Return an entry of a list, with its own commas marked so that they do not separate entries."""
    return entry.replace(",", "") if _THOUSANDS.fullmatch(_strip_sign(entry)) else entry


def accept_same_answers(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether exact comparison finds for each answer of either an equal one of the other.

    Args:
        ours: Accepted answers of a question.
        theirs: Accepted answers of a question with the same text.

    Example:
        >>> accept_same_answers(["1,000"], ["1000.0"]), accept_same_answers(["0.5", "x"], ["1/2"])
        (True, False)

    """
    if ours == theirs:
        return True
    equal = [[_is_same_answer(our_answer, their_answer) for their_answer in theirs] for our_answer in ours]
    return all(map(any, equal)) and all(map(any, zip(*equal, strict=True)))


def _is_same_answer(answer: str, reference: str) -> bool:
    if answer.strip() == reference.strip():
        return True
    numbers = read_rational(answer), read_rational(reference)
    if None not in numbers:  # fifty times faster than what follows
        return numbers[0] == numbers[1]
    pairs = ((answer, reference), (reference, answer))
    return any(inspect_answer(judge_exactly, *pair, str) is Verdict.RIGHT for pair in pairs)


def write_decimal_points(text: str) -> str:
    """Return a text with its decimal commas and thousands points rewritten as decimal points.

    Example:
        >>> write_decimal_points("3,5 kg"), write_decimal_points("1.234,5"), write_decimal_points("(0,5; 2)")
        ('3.5 kg', '1234.5', '(0.5; 2)')

    """
    return _COMMA_DECIMAL.sub(lambda number: number[0].replace(".", "").replace(",", "."), text)


def find_comma_decimals(answers: list[str]) -> list[int]:
    """Return the places of answers that may be decimals with a comma.

    There are none where others have a point, or where others are lists. Thousands are none of them: 1,000 is a
    thousand, 0,125 may be an eighth.

    Example:
        >>> find_comma_decimals(["3,5", "1,000", "0,125", "7"]), find_comma_decimals(["3,5", "2.5", "0.2"])
        ([0, 2], [])
        >>> find_comma_decimals(["3,5", "1,3,5"])
        []

    """
    if any(_is_number_list(text) for text in answers):
        return []
    decimals = [
        place
        for place, text in enumerate(answers)
        if _LIKE_COMMA_DECIMAL.fullmatch(text)
        and (_strip_sign(text).startswith("0,") or not _THOUSANDS.fullmatch(_strip_sign(text)))
    ]
    return decimals if len(decimals) > sum(bool(_DECIMAL.fullmatch(text)) for text in answers) else []


def _is_number_list(text: str) -> bool:
    """Whether it is several numbers, which a space behind a comma or a second comma tells from a decimal."""
    has_parts = ", " in text or text.count(",") > 1
    return has_parts and bool(_NUMBERS.fullmatch(text)) and not _THOUSANDS.fullmatch(_strip_sign(text))


def _strip_sign(number: str) -> str:
    return number.strip("$+- \u2212\n")
