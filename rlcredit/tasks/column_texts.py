"""The text of a column that an instruction names: a text, a number, or options on separate lines."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rlcredit.tasks.record_values import describe_odd_value, read_answer_text

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
    said = {name: value for name, value in fields.items() if value is not None}
    if "text" in said and said.keys() <= OPTION_FIELDS:
        texts, labels = said["text"], said.get("label")
        are_lists = isinstance(texts, list)
        options = _pair_lists(texts, labels) if are_lists else [(labels, texts)]
    elif all(map(_LABEL.fullmatch, map(str, said))):
        options = said.items()
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
    shown = "" if label is None else _write_scalar(label, "has as a label", "Write it as a text.")
    point = "." if shown[-1:].isalnum() else ""
    return f"{shown}{point} {text}" if shown else text


def _write_scalar(content: Any, verb: str, repair: str) -> str:
    if isinstance(content, str):
        return content if content.strip() else ""
    text = read_answer_text(content)
    if text is None:
        raise ValueError(f"{verb} {describe_odd_value(content)}. {repair}")
    return text
