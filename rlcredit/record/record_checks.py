"""Check a record from elsewhere: its lines must have the record's form and name only files of its folder."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlcredit.base.files import find_path_fault
from rlcredit.config.json_shapes import TEXT_OR_NULL, Shape, find_shape_mismatch, shorten_repr
from rlcredit.record.journal import read_journal_entries
from rlcredit.run_folder.layout import RunFolder

ENTRY_SHAPES: dict[str, Shape] = {
    "metrics": {"step": int, "time": int, "metrics": {str: float}},
    "parameters": {"parameters": {str: str}},
    "tags": {"tags": {str: str}},
    "file": {"file": str, "to": TEXT_OR_NULL},
    "table": {"table": str},
}
"""Lines of a record, by the key that tells them apart."""


def refuse_invalid_record(folder: RunFolder) -> None:
    """Refuse a record that names what is not in its folder, before any of it is sent.

    Args:
        folder: Folder of the run; anybody may have written what is in it.

    Raises:
        ValueError: names the file, the line and the field.

    """
    for path in (folder.tracking, folder.record, folder.lock):
        _refuse_path_fault(path, folder.path, str(path))
    for place, entry in _number_record_lines(folder.record):
        kind = next((name for name in ENTRY_SHAPES if isinstance(entry, dict) and name in entry), None)
        if kind is None:
            raise ValueError(f"{place}: {shorten_repr(entry)} is not a valid entry of a record. {DELIVERY_REPAIR}")
        if problem := find_shape_mismatch(entry, ENTRY_SHAPES[kind]):
            raise ValueError(f"{place}: {problem}. {DELIVERY_REPAIR}")
        for key in {"file", "table", "to"} & entry.keys():
            _refuse_outside_name(entry[key], folder.path, f"{place}: {key}")
        if kind == "table":
            _refuse_invalid_table(folder.path / entry["table"])


DELIVERY_REPAIR = "Deliver a folder as its run has left it."


def _number_record_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the lines of a record, each with its place."""
    number = 0
    try:
        for number, (entry, _) in enumerate(read_journal_entries(path), start=1):
            yield f"{path}, line {number}", entry
    except (ValueError, RecursionError):
        raise ValueError(f"{path}, line {number + 1}: not JSON. {DELIVERY_REPAIR}") from None


def _refuse_outside_name(name: str | None, folder: Path, place: str) -> None:
    """Refuse a name that leads out of a folder, by itself or by a link on the way or below."""
    if name is None:
        return
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
        raise ValueError(f"{place} is {shorten_repr(name)}, which is not a path inside the folder. {DELIVERY_REPAIR}")
    whole = folder / path
    contents = whole.rglob("*") if whole.is_dir() and not whole.is_symlink() else ()
    for part in (whole, *contents):
        _refuse_path_fault(part, folder, place)


def _refuse_path_fault(path: Path, folder: Path, place: str) -> None:
    """Refuse links that lead out of a folder, and anything that is neither a file nor a folder."""
    if fault := find_path_fault(path, folder):
        raise ValueError(f"{place} names {path}, which is {fault}. {DELIVERY_REPAIR}")


def _refuse_invalid_table(path: Path) -> None:
    if not path.is_file():
        return
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: not JSON. {DELIVERY_REPAIR}") from None
    columns = list(rows[0]) if isinstance(rows, list) and rows and isinstance(rows[0], dict) else None
    if columns is None or any(not isinstance(row, dict) or list(row) != columns for row in rows):
        raise ValueError(f"{path}: not a table of rows with the same columns. {DELIVERY_REPAIR}")
