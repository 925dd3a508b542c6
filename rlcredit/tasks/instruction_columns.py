r"""What an instruction makes of columns: ``{Body} {Question}``, filled with texts, numbers and options."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rlcredit.tasks.record_values import describe_odd_value, read_answer_text

QUESTION_FIELD = "{question}"

_BRACES = re.compile(r"(\\[A-Za-z]+(?:\{[^{}\n]*\})*|[\\^_])?\{([^{}\n]+)\}")
"""Text in braces, with the LaTeX command whose argument it is."""


def find_braced_names(instruction: str) -> list[str]:
    r"""Return the names in braces of an instruction, except arguments of LaTeX commands.

    Example:
        >>> find_braced_names(r"{Body}{Question} Write \boxed{answer}, \frac{1}{2} or {{json}}.")
        ['Body', 'Question', 'json']

    """
    return [match[2] for match in _find_braces(instruction)]


def split_instruction(instruction: str, is_column: Callable[[str], bool]) -> tuple[str, str]:
    r"""Split an instruction into the template of the question and the text around it.

    Args:
        instruction: Instruction as the configuration has it.
        is_column: Function that tells whether a name in braces is one of a column; ``question`` always is.

    Returns:
        The first part reaches from the first to the last column that is named; the second is the instruction with
        ``{question}`` in its place.

    Example:
        >>> split_instruction("Read: {Body} {Question} Box it.", {"Body", "Question"}.__contains__)
        ('{Body} {Question}', 'Read: {question} Box it.')
        >>> split_instruction("{question} Say {answer}, not {question}.", {"Body"}.__contains__)
        ('{question}', '{question} Say {answer}, not {question}.')

    """
    places = [match for match in _find_braces(instruction) if match[2] == "question" or is_column(match[2])]
    if all(match[2] == "question" for match in places):
        return QUESTION_FIELD, instruction
    start, end = places[0].start(2) - 1, places[-1].end()
    return instruction[start:end], instruction[:start] + QUESTION_FIELD + instruction[end:]


def fill_template(template: str, text_of: Callable[[str], str | None]) -> str:
    """Fill a template with the texts of columns.

    Args:
        template: First part of :func:`split_instruction`.
        text_of: Function that returns the text of a name in braces; None where it is no column, and stays as it is
            written.

    """

    def text(match: re.Match[str]) -> str:
        content = None if match[1] else text_of(match[2])
        return match[0] if content is None else content

    return _BRACES.sub(text, template).strip()


def _find_braces(instruction: str) -> Iterator[re.Match[str]]:
    return (match for match in _BRACES.finditer(instruction) if not match[1])


OPTION_FIELDS = frozenset({"label", "text"})
"""Fields of an option; one without a label is its text."""

_LABEL = re.compile(r"\(?([A-Za-z]|\d{1,2})[.):]?")
"""A letter or a number, under which an object has an option as well."""


def write_column_text(content: Any) -> str:
    r"""Return the text of a column for a question, entries of a list and options on separate lines.

    Options are objects with ``label`` and ``text``, one object with a list of each, or one with letters or numbers as
    fields. What is null in a column or a field is empty; otherwise nothing is left out.

    Args:
        content: Value of the column.

    Raises:
        ValueError: it has no text; with what it is, and the repair.

    Example:
        >>> write_column_text([{"label": "A", "text": 3}, {"label": "B", "text": "8"}, "none of these"])
        'A. 3\nB. 8\nnone of these'
        >>> write_column_text({"label": ["A", "B"], "text": ["3", "8"]}) == write_column_text({"A": "3", "B": "8"})
        True

    """
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(_write_entries(content))
    if isinstance(content, Mapping):
        return "\n".join(_write_options(content, "is", "Name one of them as column.field."))
    return _write_scalar(content, "is", "Write it as a text.")


def _write_entries(entries: Iterable[Any]) -> Iterator[str]:
    repair = "Write each entry as a text, or as an option: {label: A, text: ...}."
    for entry in entries:
        if isinstance(entry, Mapping):
            yield from _write_options(entry, "lists", repair)
        else:
            yield _write_scalar(entry, "lists", repair)


def _write_options(fields: Mapping[str, Any], verb: str, repair: str) -> Iterator[str]:
    """Yield the lines of an object with options."""
    values = {name: value for name, value in fields.items() if value is not None}
    if "text" in values and values.keys() <= OPTION_FIELDS:
        texts, labels = values["text"], values.get("label")
        are_lists = isinstance(texts, list)
        options = _pair_lists(texts, labels) if are_lists else [(labels, texts)]
    elif all(map(_LABEL.fullmatch, map(str, values))):
        options = values.items()
    else:
        raise ValueError(f"{verb} {describe_odd_value(fields)}. {repair}")
    for label, text in options:
        yield _write_option(label, _write_scalar(text, "has in an option", "Write it as a text."))


def _pair_lists(texts: list[Any], labels: Any) -> list[tuple[Any, Any]]:
    labels = [None] * len(texts) if labels is None else labels
    if not isinstance(labels, list) or len(labels) != len(texts):
        raise ValueError(f"has {len(texts)} texts and for labels {labels!r:.80}. Write one label for each text.")
    return list(zip(labels, texts, strict=True))


def _write_option(label: Any, text: str) -> str:
    label_text = "" if label is None else _write_scalar(label, "has as a label", "Write it as a text.")
    point = "." if label_text[-1:].isalnum() else ""
    return f"{label_text}{point} {text}" if label_text else text


def _write_scalar(content: Any, verb: str, repair: str) -> str:
    if isinstance(content, str):
        return content if content.strip() else ""
    text = read_answer_text(content)
    if text is None:
        raise ValueError(f"{verb} {describe_odd_value(content)}. {repair}")
    return text
