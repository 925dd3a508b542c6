"""Convert values of any column type to the text of a question or an answer."""

import ast
import contextlib
import difflib
import json
import math
import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from rlcredit.policy.chat_turns import TURN_ROLES, Conversation, parse_conversation

USUAL_COLUMNS = {
    "question": ("question", "prompt", "problem"),
    "answer": ("answer", "final_answer", "ground_truth"),
}
"""Names of columns that are found without being named."""

MAX_LISTED_COLUMNS = 20
"""Columns that a message lists, at most."""

_NO_COLUMN = object()
_QUOTED = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")
_QUOTED_LIST = re.compile(rf"\s*\[\s*(?:{_QUOTED.pattern})(?:[\s,]+(?:{_QUOTED.pattern}))*\s*,?\s*\]\s*")
_TURNS = re.compile(r"\s*(?:\[\s*\{.*\}\s*\]|\{.*\})\s*", re.DOTALL)
_ROLE = re.compile(rf"""["'](?:role|from)["']\s*:\s*["'](?:{"|".join(TURN_ROLES)}|function|human|gpt)["']""")
_ESCAPED = re.compile(r"""\\(?:([\\'"/])|u([\da-fA-F]{4})|[nrt](?![a-zA-Z]))""")
"""What lists of Python and JSON escape; of `\\nu` and `\\frac` the backslash is meant."""


def find_role_column(role: str, column: str | None, record: Mapping[str, Any], location: str) -> str:
    """Return the column of the question or the answer.

    Args:
        role: ``question`` or ``answer``.
        column: Name of the column that the configuration gives; a point leads into a mapping. One of
            :data:`USUAL_COLUMNS` if None.
        record: First record of the table.
        location: Place that the record is from, for messages.

    Raises:
        ValueError: there is none, or more than one that could be meant; with the columns that were found.

    Example:
        >>> find_role_column("answer", None, {"problem": "1+1", "answer": 2}, "x.csv, line 2")
        'answer'

    """
    matches = [name for name in ([column] if column else USUAL_COLUMNS[role]) if has_column(record, name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ValueError(
            f"{location}: the {role} may be in `{'` or `'.join(matches)}`. Name the column in data.init_args.{role}."
        )
    nested_columns = _list_nested_columns(record, {column.rpartition(".")[2]} if column else set(USUAL_COLUMNS[role]))
    columns = list_columns(record)
    if column:
        near = nested_columns or difflib.get_close_matches(column, columns, 1, 0.75)
        advice = f"Did you mean `{'` or `'.join(near)}`?" if near else f"It has {', '.join(columns)}."
        raise ValueError(f"data.init_args.{role}: {location}, has no column `{column}`. {advice}")
    example = f", for example {' or '.join(nested_columns)}" if nested_columns else ""
    raise ValueError(
        f"{location}: no column is called `{'`, `'.join(USUAL_COLUMNS[role])}`; found {columns}. Name the column of "
        f"the {role} in data.init_args.{role}{example}."
    )


def _list_nested_columns(record: Mapping[str, Any], names: Collection[str]) -> list[str]:
    """Return the columns inside others that have one of some names, as in ``reward_model.ground_truth``."""
    columns = list[str]()
    for name, value in record.items():
        if isinstance(value, Mapping):
            columns += [f"{name}.{inner}" for inner in value if inner in names]
    return columns


def read_column(record: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """Return the value of a column; the default if the record lacks it.

    Example:
        >>> read_column({"reward_model": {"ground_truth": "34"}}, "reward_model.ground_truth")
        '34'

    """
    if name in record:
        return record[name]
    outer, point, inner = name.partition(".")
    fields = record.get(outer)
    return read_column(fields, inner, default) if point and isinstance(fields, Mapping) else default


def has_column(record: Mapping[str, Any], name: str) -> bool:
    """Whether a record has a column."""
    return read_column(record, name, _NO_COLUMN) is not _NO_COLUMN


def is_within_column(inner: str, outer: str) -> bool:
    """Whether a column is another one, or a field inside it.

    Example:
        >>> is_within_column("reward_model.ground_truth", "reward_model"), is_within_column("answer", "answers")
        (True, False)

    """
    return inner == outer or inner.startswith(f"{outer}.")


def list_columns(record: Mapping[str, Any]) -> list[str]:
    """Return the columns of a record, as messages list them."""
    return sorted(map(str, record))[:MAX_LISTED_COLUMNS]


def read_question(content: Any, location: str) -> str | Conversation | None:
    """Return a question; None if there is none.

    Args:
        content: Text or number, or turns of a conversation, also as a text of JSON or Python; a single one, the user's,
            is a text.
        location: Place that the question is from, for messages.

    Raises:
        ValueError: a turn is malformed, or the last one is not to be answered.

    Example:
        >>> read_question([{"role": "user", "content": "1+1?"}], "row 0")
        '1+1?'
        >>> read_question('[{"role": "user", "content": "1+1?"}]', "row 0")
        '1+1?'
        >>> read_question(" ", "row 0"), read_question(7, "row 0")
        (None, '7')

    """
    turns = _read_turns_text(content, location) if isinstance(content, str) else content
    if isinstance(turns, Mapping):
        turns = [turns]
    if not isinstance(turns, list):
        return read_answer_text(content)
    conversation = parse_conversation(turns, location)
    if not all(turn["content"].strip() or "tool_calls" in turn for turn in conversation):
        return None
    only_turn = conversation[0]
    return only_turn["content"] if len(conversation) == 1 and only_turn.keys() == {"role", "content"} else conversation


def _read_turns_text(text: str, location: str) -> Any:
    """Return the turns that a text writes down, as tables of text hold them; None if it is any other text."""
    if not (_TURNS.fullmatch(text) and _ROLE.search(text)):
        return None
    for read in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return read(text.strip())
    raise ValueError(f"{location}: turns are written as JSON, which this is not: {text!r:.200}.")


def read_answer_text(content: Any) -> str | None:
    """Return the text of one answer; None if it has none.

    Whole numbers have no decimals, also where their column is one of floats, and no number has an exponent.

    Example:
        >>> read_answer_text(42.0), read_answer_text(1e-05), read_answer_text(float("nan")), read_answer_text(True)
        ('42', '0.00001', None, None)

    """
    if isinstance(content, str):
        return content if content.strip() else None
    if isinstance(content, bool):
        return None
    if isinstance(content, int):
        return str(content)
    if isinstance(content, float | Decimal):
        return _write_decimal(content) if math.isfinite(content) else None
    return None


def read_answer_list(content: Any) -> list[Any] | None:
    """Return the entries of a list; None if it is not a list.

    A text that is a list of quoted texts, as tables of text write lists, is that list.

    Example:
        >>> read_answer_list(["0.5", "1/2"]), read_answer_list("['0.5', '1/2']")
        (['0.5', '1/2'], ['0.5', '1/2'])
        >>> read_answer_list("[0, 1]"), read_answer_list("0.5")
        (None, None)

    """
    if isinstance(content, list | tuple):
        return list(content)
    if isinstance(content, str) and _QUOTED_LIST.fullmatch(content):
        return [_ESCAPED.sub(_unescape_character, entry[0][1:-1]) for entry in _QUOTED.finditer(content)]
    return None


def _unescape_character(match: re.Match[str]) -> str:
    character, code = match.groups()
    return character or (chr(int(code, 16)) if code else "\n")


def find_type_fault(content: Any) -> str:
    """Return why a value cannot be an answer; empty for texts, numbers, lists of these and missing values."""
    if not isinstance(content, bool) and isinstance(content, str | int | float | Decimal | None):
        return ""
    if isinstance(content, list | tuple):
        odd = next((part for part in content if isinstance(part, list | tuple) or find_type_fault(part)), None)
        return "" if odd is None else f"lists {describe_odd_value(odd)}. Write each entry as a text or a number"
    repair = "Write it as a text or a number"
    if isinstance(content, Mapping):
        repair = "Name one of them in data.init_args.answer, as column.field"
    if isinstance(content, bool):
        repair = "Write it as the text that a completion should state"
    return f"is {describe_odd_value(content)}. {repair}"


def describe_odd_value(content: Any) -> str:
    """Return the name of a value that is neither a text nor a finite number.

    Example:
        >>> describe_odd_value({"b": 1, "a": 2}), describe_odd_value(True), describe_odd_value([1])
        ("an object with the fields ['a', 'b']", 'the truth value true', 'the list [1]')

    """
    if isinstance(content, Mapping):
        return f"an object with the fields {list_columns(content)}"
    if isinstance(content, bool):
        return f"the truth value {str(content).lower()}"
    if isinstance(content, list | tuple):
        return f"the list {content!r:.80}"
    if content is None or isinstance(content, float | Decimal):
        return "null" if content is None else f"the number {content}"
    return f"a value of type {type(content).__name__}, {content!r:.80}"


def _write_decimal(number: float | Decimal) -> str:
    digits = f"{Decimal(str(number)):f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
