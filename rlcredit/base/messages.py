"""Warnings that are printed once, however often their cause comes up."""

import contextlib
import sys

from rlcredit.base.text_escaping import escape_controls

_told: set[str] = set()


def warn_once(sentence: str, kind: str | None = None) -> None:
    """Warn on standard error, unless the warning has been printed before.

    Args:
        sentence: Sentence that says what happened and what follows from it.
        kind: Kind of message that is printed only once; the sentence itself if None.

    """
    if (kind or sentence) not in _told:
        _told.add(kind or sentence)
        print_message(f"warning: {sentence}")


def rearm_warning(kind: str) -> None:
    """Let a warning be printed again, because its cause has gone away in between."""
    _told.discard(kind)


def print_message(sentence: str) -> None:
    """Print a message about the run on standard error."""
    with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
        print(escape_controls(sentence), file=sys.stderr, flush=True)
