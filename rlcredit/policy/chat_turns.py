"""The turns of a conversation, as chat templates read them, out of turns as tables and exports of agents have them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

TURN_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
"""Roles of turns, and as which they are read: a developer's turn stands where a system prompt does."""

ANSWERED_ROLES = ("user", "tool")
"""Roles of a last turn, which the policy answers."""

TEXT_PARTS = ("text", "input_text", "output_text")
"""Types of the parts of a turn that are texts."""


class ChatMessage(TypedDict):
    """One message of a conversation; chat templates decide how the keys beside role and content are written."""

    role: str
    content: str
    name: NotRequired[str]
    reasoning_content: NotRequired[str]
    tool_call_id: NotRequired[str]
    tool_calls: NotRequired[list[Any]]


FURTHER_KEYS = {"name": str, "reasoning_content": str, "tool_call_id": str, "tool_calls": list}
"""Keys that a turn may have beside role and content, and of which type they are."""

EMPTY_VALUES = (None, "", [], {})
"""Values of keys that count as absent."""

Conversation = list[ChatMessage]
"""Turns in their order; the last one is the user's, or a tool's."""


def parse_conversation(question: str | Sequence[Mapping[str, Any]], location: str = "a question") -> Conversation:
    """Return a question as chat messages; a text is one message of the user.

    The parts of a content that is a list are put on separate lines. Keys and fields whose value is null or empty, as
    tables write those of other turns, count as absent.

    Args:
        question: Text of the question, or its turns.
        location: Place of the question, for error messages.

    Raises:
        ValueError: an entry is no turn, has a key or a part that would be lost, or the last one is not to be answered.

    Example:
        >>> parse_conversation("4 + 3 =")
        [{'role': 'user', 'content': '4 + 3 ='}]
        >>> parse_conversation([{"role": "user", "content": [{"type": "text", "text": "4 + 3 ="}], "name": None}])
        [{'role': 'user', 'content': '4 + 3 ='}]

    """
    if isinstance(question, str):
        return [ChatMessage(role="user", content=question)]
    messages = [_parse_turn(turn, location) for turn in question]
    if not messages or messages[-1]["role"] not in ANSWERED_ROLES:
        raise ValueError(f"{location}: the last turn must be the user's or a tool's, for the policy answers it.")
    return messages


def write_turn(turn: ChatMessage) -> str:
    """Return a turn as one text, to identify it and to show to people.

    Example:
        >>> write_turn({"role": "tool", "content": "7", "name": "add"})
        'tool: 7 {"name": "add"}'

    """
    fields = {key: turn[key] for key in turn if key in FURTHER_KEYS}
    suffix = f" {json.dumps(fields, ensure_ascii=False, default=str)}" if fields else ""
    return f"{turn['role']}: {turn['content']}{suffix}"


def _parse_turn(turn: Any, location: str) -> ChatMessage:
    fields = _drop_nulls(turn) if isinstance(turn, Mapping) else {}
    role, content = fields.pop("role", None), fields.pop("content", None)
    if not isinstance(role, str) or role not in TURN_ROLES:
        raise ValueError(f"{location}: a turn is {{role: {' | '.join(TURN_ROLES)}, content: text}}, got {turn!r:.200}.")
    further_fields = _keep_filled(fields)
    if misfits := [key for key, value in further_fields.items() if not isinstance(value, FURTHER_KEYS.get(key, ()))]:
        raise ValueError(
            f"{location}: a turn has {misfits[0]}: {further_fields[misfits[0]]!r:.80}. Beside role and content only "
            f"{', '.join(FURTHER_KEYS)} (a list) are read; leave it out, or write what it says into the content."
        )
    if content in (None, []) and "tool_calls" not in further_fields:
        raise ValueError(
            f"{location}: a turn has no content, got {turn!r:.200}. Only one with tool_calls may have none."
        )
    parts = content if isinstance(content, list) else [content or ""]
    return ChatMessage(
        role=TURN_ROLES[role], content="\n".join(_read_part(part, location) for part in parts), **further_fields
    )


def _read_part(part: Any, location: str) -> str:
    """Return the text of a content, or of a part of one."""
    fields = _keep_filled(part) if isinstance(part, Mapping) else {"text": part}
    text = fields.pop("text", None)
    if not isinstance(text, str) or fields.pop("type", "text") not in TEXT_PARTS or fields:
        expectation = "the content of a turn is a text, or parts {type: text, text: ...}"
        raise ValueError(f"{location}: {expectation}, got {part!r:.80}. Only text can be read.")
    return text


def _keep_filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value not in EMPTY_VALUES}


def _drop_nulls(value: Any) -> Any:
    """Return a value without the fields that are null, at any depth."""
    if isinstance(value, list | tuple):
        return [_drop_nulls(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    return {key: _drop_nulls(part) for key, part in value.items() if part is not None}
