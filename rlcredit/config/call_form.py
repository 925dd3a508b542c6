"""The call form of an entry: ``GTPO(beta=0.2)`` for ``{class_path: GTPO, init_args: {beta: 0.2}}``."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from rlcredit.config.strict_yaml import UnreadableError, parse_yaml, shorten_name

CALL_START = re.compile(r"\s*([A-Za-z_][\w.]*)\(")
_TOKEN = re.compile(r"""(?<!\w)"(?:[^"\\]|\\.)*"|(?<!\w)'(?:[^']|'')*'|.""", re.DOTALL)
_CALL = re.compile(r"""(?<!\w)"(?:[^"\\]|\\.)*"|(?<!\w)'(?:[^']|'')*'|[A-Za-z_][\w.]*\(""")

QUOTING_ADVICE = "Inside [ ] or { }, and where a value contains `: `, put quotes around the whole entry."


class CallFormError(ValueError):
    """A call form that cannot be read; the message says where and what to write."""


def expand_call_form(text: str, parameters: Sequence[str] = ()) -> Any:
    """Return the meaning of an entry in call form; every other text is returned as it is.

    Values are YAML, and call forms themselves where a class is expected.

    Args:
        text: Entry as it was written.
        parameters: Parameters of the class, if they are known, to be named where an argument has no name.

    Raises:
        CallFormError: a parenthesis, name or value is missing, or an argument is given twice.

    Example:
        >>> expand_call_form("GTPO(beta=0.2)"), expand_call_form("GTPO()"), expand_call_form("GTPO")
        ({'class_path': 'GTPO', 'init_args': {'beta': 0.2}}, 'GTPO', 'GTPO')
        >>> expand_call_form("KLPenalty(beta=0.04, loss=ClippedSurrogate(high=0.28))")["init_args"]
        {'beta': 0.04, 'loss': 'ClippedSurrogate(high=0.28)'}

    """
    match = CALL_START.match(text)
    if match is None:
        return text
    name, opening = match[1], match.end() - 1
    closing = _find_closing(text, opening)
    if closing is None:
        raise CallFormError(f"`{shorten_name(text)}` has no closing parenthesis. Add it. {QUOTING_ADVICE}")
    if text[closing + 1 :].strip():
        return text
    arguments: dict[str, Any] = {}
    for place, part in enumerate(_split_arguments(text[opening + 1 : closing])):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (equals and key.isidentifier()):
            parameter = parameters[place] if place < len(parameters) else "NAME"
            raise CallFormError(f"`{part.strip()}` has no name. Write {name}({parameter}={part.strip()}).")
        if key in arguments:
            raise CallFormError(f"{name}.{key} is given twice. Remove one.")
        if not value:
            raise CallFormError(f"{name}.{key} has no value. Write {name}({key}=...), or leave it out.")
        arguments[key] = _parse_value(value, f"{name}.{key}")
    return {"class_path": name, "init_args": arguments} if arguments else name


def _parse_value(value: str, key: str) -> Any:
    match = CALL_START.match(value)
    if match and _find_closing(value, match.end() - 1) == len(value) - 1:
        return value  # another call form, or a text that looks like one: what is expected there decides
    try:
        return parse_yaml(_quote_calls(value) if value[0] in "[{" else value)
    except UnreadableError as error:
        raise CallFormError(f"{key}: {error}") from None


def _walk_tokens(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield each character, or quoted text as a whole, with its place and the number of brackets around it."""
    depth = 0
    for match in _TOKEN.finditer(text):
        depth -= match[0] in (")", "]", "}")
        yield match.start(), match[0], depth
        depth += match[0] in ("(", "[", "{")


def _find_closing(text: str, opening: int) -> int | None:
    """Return the place of the bracket that closes the one at a place."""
    return next((opening + place for place, _, depth in _walk_tokens(text[opening:]) if place and depth == 0), None)


def _split_arguments(text: str) -> list[str]:
    """Return the parts between the commas that stand in no brackets and quotes.

    Example:
        >>> _split_arguments("a=[1, 2], b='x, y', c=F(d=1, e=2)")
        ['a=[1, 2]', " b='x, y'", ' c=F(d=1, e=2)']

    """
    commas = [place for place, token, depth in _walk_tokens(text) if token == "," and depth == 0]
    starts, ends = [0, *(place + 1 for place in commas)], [*commas, len(text)]
    parts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return parts[:-1] if not parts[-1].strip() else parts


def _quote_calls(text: str) -> str:
    """Put quotes around the call forms in a list or mapping, whose commas YAML would take for its own.

    Example:
        >>> print(_quote_calls("[GRPO, GTPO(beta=0.1, clip=2), 'F(x)']"))
        [GRPO, "GTPO(beta=0.1, clip=2)", 'F(x)']

    """
    result, place = "", 0
    while match := _CALL.search(text, place):
        closing = _find_closing(text, match.end() - 1) if match[0].endswith("(") else None
        end = match.end() if closing is None else closing + 1
        is_entry = text[: match.start()].rstrip()[-1:] in "[{,:" and text[end:].lstrip()[:1] in ",]}"
        word = text[match.start() : end]
        result += text[place : match.start()] + (json.dumps(word) if closing is not None and is_entry else word)
        place = end
    return result + text[place:]
