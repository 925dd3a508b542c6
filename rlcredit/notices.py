"""Things that people are told once, however often they happen."""

import contextlib
import sys

_told: set[str] = set()


def once(sentence: str, kind: str | None = None) -> None:
    """Warn on standard error, unless it has been said before.

    Args:
        sentence: with what happened and what follows from it.
        kind: what counts as the same; the sentence itself if None.

    """
    if (kind or sentence) not in _told:
        _told.add(kind or sentence)
        tell(f"warning: {sentence}")


def again(kind: str) -> None:
    """Let a warning be given anew: what it warned of has been over in between."""
    _told.discard(kind)


def tell(sentence: str) -> None:
    """Say something about the run that is no part of its output."""
    with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
        print(sentence, file=sys.stderr, flush=True)
