"""A rollout that records what an operator reads, to check the operator's header."""

import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlcredit.credit.rollout import ROLLOUT_FIELDS, Rollout

SHAPE_FIELDS = frozenset(["mask", "group_size"])
"""Fields that describe shapes; every operator may read them."""

_NOTES = "_notes"


class UndeclaredReads:
    """Fields that have been read without being declared.

    Args:
        reads: Fields that may be read.

    Attributes:
        read: Where each other field was first read, as ``file, line n``.

    """

    def __init__(self, reads: Set[str]) -> None:
        self.watched = ROLLOUT_FIELDS - reads - SHAPE_FIELDS
        self.read: dict[str, str] = {}


class _WatchedRollout(Rollout):
    """A rollout under watch: the class of one while an operator assigns credit to it.

    A field that the operator has bound itself is its own to read. What rlcredit reads when the operator asks it, as the
    oracle does, is not read by the operator. A copy is not watched.
    """

    def __getattribute__(self, name: str) -> Any:
        if name in ROLLOUT_FIELDS:
            notes = object.__getattribute__(self, "__dict__").get(_NOTES)
            if notes and name in notes.watched and (place := _find_reading_line()):
                notes.read.setdefault(name, place)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        notes = vars(self).pop(_NOTES)  # what is made anew from the field is not read by the operator
        super().__setattr__(name, value)
        vars(self)[_NOTES] = notes
        notes.watched -= {name}

    def __copy__(self) -> Rollout:
        twin = object.__new__(Rollout)
        vars(twin).update({name: value for name, value in vars(self).items() if name != _NOTES})
        return twin


@contextmanager
def note_undeclared_reads(rollout: Rollout, reads: Set[str]) -> Iterator[UndeclaredReads]:
    """Record reads of a rollout beside ``reads``, by changing its class meanwhile; tensors are not touched.

    Args:
        rollout: Rollout whose fields are read.
        reads: Fields that may be read.

    """
    notes, old_state = UndeclaredReads(reads), (rollout.__class__, vars(rollout).get(_NOTES))
    vars(rollout)[_NOTES], rollout.__class__ = notes, _WatchedRollout
    try:
        yield notes
    finally:
        rollout.__class__, vars(rollout)[_NOTES] = old_state
        if old_state[1] is None:
            del vars(rollout)[_NOTES]


def _find_reading_line() -> str | None:
    """Return the place of the code that reads; None if it is rlcredit's own."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals["__name__"] in (__name__, Rollout.__module__):
        frame = frame.f_back
    if frame.f_globals.get("__name__", "").startswith("rlcredit."):
        return None
    return f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
