"""Messages to people on standard error, warnings that are printed once, and seconds as people write them."""

import contextlib
import difflib
import math
import sys
from collections.abc import Iterable

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
    """Allow a warning to be printed again, because its cause has disappeared in between."""
    _told.discard(kind)


def print_message(sentence: str) -> None:
    """Print a message about the run on standard error."""
    with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
        print(escape_controls(sentence), file=sys.stderr, flush=True)


def format_duration(seconds: float) -> str:
    """Format seconds for people.

    Example:
        >>> format_duration(42.4), format_duration(150), format_duration(9000)
        ('42 s', '3 min', '2.5 h')

    """
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.2f} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def find_closest_name(name: str, names: Iterable[str], similarity: float = 0.6) -> str | None:
    """Return the most similar name, ignoring case; None if no name is similar.

    Example:
        >>> find_closest_name("samplng", ["scheduler", "sampling"]), find_closest_name("gtpo", ["GTPO"])
        ('sampling', 'GTPO')
        >>> find_closest_name("x", ["sampling"]) is None
        True

    """
    names_by_lower = {match.lower(): match for match in names}
    if name in names_by_lower.values():
        return name
    matches = difflib.get_close_matches(name.lower(), names_by_lower, 1, similarity)
    return names_by_lower[matches[0]] if matches else None


def suggest_name(name: str, names: Iterable[str], similarity: float = 0.6) -> str:
    """Return the question after the name that another may mean; empty if it is like none.

    Example:
        >>> suggest_name("samplng", ["scheduler", "sampling"])
        ' Did you mean `sampling`?'

    """
    close = find_closest_name(name, names, similarity)
    return f" Did you mean `{close}`?" if close else ""
