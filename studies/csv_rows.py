"""CSV files of rows with named columns, as the studies keep them."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def read_csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_csv_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows to a new file."""
    path.unlink(missing_ok=True)
    append_csv_rows(path, rows)


def append_csv_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows of the same columns to a file, which is made if need be."""
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)
