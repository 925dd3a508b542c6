"""Rows of CSV files, every value as the text that it is."""

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

from rlcredit.tasks.json_records import LARGEST, WIDE, Located

DELIMITERS = ",;\t"
"""What may separate values: the one that occurs most often in the first line does."""


def read_csv_records(path: Path) -> Located:
    """Yield every row under the header; what is read are texts, so that 007 and 1/2 stay what they are.

    Raises:
        ValueError: names file and line.

    """
    with path.open("rb") as file:
        if file.read(2) in WIDE:
            raise ValueError(f"{path}: not UTF-8 (it is UTF-16). Save the file as UTF-8.")
        file.seek(0)
        content = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        limit = csv.field_size_limit(LARGEST)
        try:
            yield from _read_delimited_rows(content, path)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 ({error.reason}). Save the file as UTF-8.") from None
        finally:
            csv.field_size_limit(limit)


def _read_delimited_rows(content: io.TextIOWrapper, path: Path) -> Located:
    delimiter = max(DELIMITERS, key=content.readline(LARGEST).count)
    content.seek(0)
    reader = csv.reader(content, delimiter=delimiter, strict=True)
    try:
        yield from _read_rows_under_header(reader, path)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not CSV ({error}).") from None


def _read_rows_under_header(reader: Any, path: Path) -> Located:
    header = [name.strip() for name in next(reader, [])]
    if repeated := [name for name, count in Counter(header).items() if count > 1]:
        raise ValueError(f"{path}, line 1: the column `{repeated[0]}` occurs twice. Rename or remove one.")
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        if row and len(row) != len(header):
            raise ValueError(
                f"{where}: {len(row)} values under a header of {len(header)}. Put a text that holds a "
                f'{ {",": "comma", ";": "semicolon"}.get(reader.dialect.delimiter, "tab") } into "quotation marks".'
            )
        if row:
            yield where, dict(zip(header, row, strict=True))
