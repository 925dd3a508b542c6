"""Text made safe to show: nothing in it moves a cursor, reverses a line, or becomes a page."""

import contextlib
import errno
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

LINE_END = "\N{RETURN SYMBOL}"

_CONTROL_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that are instructions: controls, formats, halves of pairs, ends of lines."""

_CLOSED_STREAM_ERRORS = (errno.EPIPE, errno.EIO)
"""Errors of a stream whose pipe or terminal has been closed."""

_HTML = re.compile(r"<(?=[A-Za-z/!?])")


def escape_controls(text: str) -> str:
    r"""Escape control and formatting characters, so that a policy's text cannot control a terminal; keep lines.

    Example:
        >>> escape_controls("a\x1b[2Jb"), escape_controls("a\nb")
        ('a\\x1b[2Jb', 'a\nb')

    """
    return text if text.isascii() and text.isprintable() else "".join(map(_escape_control, text))


def _escape_control(character: str) -> str:
    return (
        escape_character(character)
        if character != "\n" and unicodedata.category(character) in _CONTROL_CATEGORIES
        else character
    )


def escape_character(character: str) -> str:
    r"""Return Python's escape of a character.

    Example:
        >>> escape_character("\t"), escape_character("\u202e")
        ('\\t', '\\u202e')

    """
    return character.encode("unicode_escape").decode()


def render_token(token: str) -> str:
    """Write a token on one line; a token without text, such as a special one, becomes ∅.

    Example:
        >>> render_token(" 4"), render_token(""), render_token("." + chr(10))
        ('·4', '∅', '.⏎')

    """
    return escape_controls(token.replace("\n", LINE_END)).replace(" ", "·") or "∅"


def display_width(text: str) -> int:
    """Return the columns that a text takes in a terminal.

    Example:
        >>> display_width("4 + 3"), display_width("漢字")
        (5, 4)

    """
    wide = sum(unicodedata.east_asian_width(character) in ("W", "F") for character in text)
    return len(text) + wide - sum(bool(unicodedata.combining(character)) for character in text)


def escape_markdown(text: str) -> str:
    r"""Escape a text so that Markdown finds neither HTML nor a link in it; plain text stays as it is.

    Example:
        >>> escape_markdown("2 < 3 <img src=x> [a](b)")
        '2 < 3 &lt;img src=x> [a]\\(b)'

    """
    return _HTML.sub("&lt;", text).replace("](", "]\\(")


class SteadyStream:
    """A stream that lets everything go nowhere once its reader is gone: ``head``, say, or a terminal that was closed.

    What a command does never depends on who reads what it says: a run goes on, and a list ends quietly.

    Args:
        stream: Stream to a terminal, a pipe or a file.

    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        with self._outlive_reader():
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write the rest of the buffer."""
        with self._outlive_reader():
            self.stream.flush()

    @contextlib.contextmanager
    def _outlive_reader(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _CLOSED_STREAM_ERRORS:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class EscapingStream:
    """A stream that escapes control characters of everything written to it, except line ends.

    Args:
        stream: Stream to a terminal or a file.

    """

    def __init__(self, stream: SteadyStream) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text with its control characters escaped."""
        return self.stream.write(escape_controls(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def guard_output() -> None:
    """Escape everything this process writes to a terminal; code that draws there uses :func:`unwrap_stream`."""
    os.environ.setdefault("PYTHON_COLORS", "0")  # Python's own colours would be shown as what they are
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, EscapingStream):
            setattr(sys, name, EscapingStream(SteadyStream(stream)))


def unwrap_stream(stream: Any) -> TextIO:
    """Return the stream below, for harmless text with colours and cursor movements of one's own."""
    return cast("TextIO", stream.stream if isinstance(stream, EscapingStream) else stream)
