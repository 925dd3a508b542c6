"""Stored JSON as typed records: pydantic checks it, and a message names the key, its value and what it should be."""

import functools
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rlcredit.config.json_shapes import MAX_STORED_BYTES, shorten_repr
from rlcredit.config.strict_yaml import read_text_file, shorten_name

Record = TypeVar("Record")

_WORDS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping",
    "model_type": "a mapping",
    "none_required": "null",
}
"""Words for the value that was expected, by pydantic's name of the error."""


@functools.cache
def make_record_adapter(kind: Any) -> TypeAdapter[Any]:
    """Return pydantic's reader and writer of a type; it is strict: a number is no text, and true is no number."""
    return TypeAdapter(kind)


def read_stored_record(path: Path, kind: type[Record], repair: str) -> Record:
    """Return the record that a JSON file holds.

    Args:
        path: Path of the file.
        kind: Type of the record: a dataclass, a model, or a type with arguments.
        repair: Advice for the message if the content is no such record.

    Raises:
        ValueError: names the file, the key, its value, what it should be, and the repair.

    """
    try:
        return parse_record(read_text_file(path, MAX_STORED_BYTES), kind)
    except RecordError as error:
        raise ValueError(f"{shorten_name(path)} is damaged: {error}. {repair}") from None


class RecordError(ValueError):
    """A text that does not hold the record that was expected; the message has no full stop, a repair may follow."""


def parse_record(text: str, kind: type[Record]) -> Record:
    """Return the record that a JSON text holds.

    Raises:
        RecordError: names the first key that is wrong.

    Example:
        >>> parse_record('{"seeds": [0, 1]}', dict[str, list[int]])
        {'seeds': [0, 1]}
        >>> parse_record('{"seeds": [0, "1"]}', dict[str, list[int]])
        Traceback (most recent call last):
        rlcredit.config.stored_records.RecordError: seeds[1] is '1', not a whole number

    """
    if not text.strip():
        raise RecordError("empty")
    try:
        return make_record_adapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        raise RecordError(describe_record_fault(error)) from None


def describe_record_fault(error: ValidationError) -> str:
    """Return the first fault that pydantic has found: the key, its value, and what it should be."""
    fault = error.errors(include_url=False)[0]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
    match fault["type"]:
        case "missing":
            return f"{key} is missing"
        case "unexpected_keyword_argument" | "extra_forbidden":
            return f"{key} is an unknown key"
        case "json_invalid":
            return f"not JSON ({fault.get('ctx', {})['error']})"
        case "value_error" | "assertion_error":
            reason = str(fault.get("ctx", {})["error"]).rstrip(".")
            return f"{key}: {reason}" if key else reason
    wanted = _WORDS.get(fault["type"]) or fault["msg"].removeprefix("Input should be ")
    return f"{key or 'its content'} is {shorten_repr(fault['input'])}, not {wanted}"
