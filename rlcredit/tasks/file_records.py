"""Read records from JSON, JSON lines and CSV files of any origin."""

import codecs
import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

MAX_READ_BYTES = 2**28
"""Bytes of a line, and of a file that is one list, which are read at once."""

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""First bytes of UTF-16 files, as spreadsheets and PowerShell write them."""

_START = 2**16
"""Bytes that are looked at to find out what a file is."""

Located = Iterator[tuple[str, dict[str, Any]]]
"""Records, each with its place for messages."""


def read_json_lines(path: Path) -> Located:
    """Yield the object of every line that is not empty.

    Raises:
        ValueError: names file and line.

    """
    with path.open("rb") as file:
        for number, line in enumerate(_split_lines(file, path), start=1):
            location = f"{path}, line {number}"
            if len(line) > MAX_READ_BYTES:
                raise ValueError(
                    f"{location}: longer than {MAX_READ_BYTES:,} bytes. Leave out a column that is not needed."
                )
            if line.strip():
                yield location, _require_mapping(_parse_json(line, location), location)


def read_json_records(path: Path) -> Located:
    """Yield the objects of a file that is one list, or has one object per line.

    Raises:
        ValueError: names file and entry.

    """
    with path.open("rb") as file:
        start = _strip_byte_order_mark(file.read(_START), path)
    if start.lstrip().startswith(b"["):
        for number, entry in enumerate(_read_whole_json(path), start=1):
            location = f"{path}, entry {number}"
            yield location, _require_mapping(entry, location)
        return
    try:
        yield from read_json_lines(path)
    except ValueError:
        _refuse_one_object(path)
        raise


def _read_whole_json(path: Path) -> Any:
    with path.open("rb") as file:
        content = _strip_byte_order_mark(file.read(MAX_READ_BYTES + 1), path)
    if len(content) > MAX_READ_BYTES:
        raise ValueError(
            f"{path}: longer than {MAX_READ_BYTES:,} bytes. Write one object per line, and call it .jsonl."
        )
    return _parse_json(content, str(path))


def _split_lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield lines however they end: with a line feed, a carriage return, or both."""
    start = True
    while line := file.readline(MAX_READ_BYTES + 1):
        line = _strip_byte_order_mark(line, path) if start else line
        start = False
        yield from line.removesuffix(b"\n").removesuffix(b"\r").split(b"\r")


def _strip_byte_order_mark(start: bytes, path: Path) -> bytes:
    """Return the start of a file without its byte order mark."""
    if start.startswith(UTF16_MARKS):
        raise ValueError(f"{path}: not UTF-8 (it is UTF-16). Save the file as UTF-8.")
    return start.removeprefix(codecs.BOM_UTF8)


def _refuse_one_object(path: Path) -> None:
    """Refuse a file that is one object over several lines."""
    try:
        whole = _read_whole_json(path)
    except ValueError:
        return
    if isinstance(whole, dict):
        raise ValueError(
            f"{path}: one object with the fields {sorted(whole)[:20]}, where a list of objects is expected, or one "
            "object per line. With pandas, use to_json(orient='records')."
        )


def _require_mapping(record: Any, location: str) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise ValueError(f"{location}: expected an object with a question and an answer, got {type(record).__name__}.")
    return record


def _parse_json(text: bytes, location: str) -> Any:
    """Parse JSON, numbers that are not finite included; refuse repeated keys."""
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_build_unique_object, parse_int=_parse_integer)
    except json.JSONDecodeError as error:
        place = f"at column {error.colno}" if error.lineno == 1 else f"at line {error.lineno}, column {error.colno}"
        raise ValueError(f"{location}: not JSON ({error.msg} {place}).") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{location}: not UTF-8 ({error.reason}). Save the file as UTF-8.") from None
    except RecursionError:
        raise ValueError(f"{location}: nested too deep. Write it flatter.") from None
    except ValueError as error:
        raise ValueError(f"{location}: {error}") from None


def _build_unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if duplicates := [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]:
        raise ValueError(f"field `{duplicates[0]}` occurs twice. Remove one.")
    return dict(pairs)


def _parse_integer(digits: str) -> int | str:
    """Return an integer, or its text if it has more digits than Python reads."""
    try:
        return int(digits)
    except ValueError:
        return digits


CSV_DELIMITERS = ",;\t"
"""Possible separators; the one that occurs most often in the first line is used."""


def read_csv_records(path: Path) -> Located:
    """Yield every row below the header as texts, so that 007 and 1/2 stay unchanged.

    Raises:
        ValueError: names file and line.

    """
    with path.open("rb") as file:
        _strip_byte_order_mark(file.read(2), path)
        file.seek(0)
        content = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        limit = csv.field_size_limit(MAX_READ_BYTES)
        try:
            yield from _read_delimited_rows(content, path)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 ({error.reason}). Save the file as UTF-8.") from None
        finally:
            csv.field_size_limit(limit)


def _read_delimited_rows(content: io.TextIOWrapper, path: Path) -> Located:
    delimiter = max(CSV_DELIMITERS, key=content.readline(MAX_READ_BYTES).count)
    content.seek(0)
    rows = _number_rows(csv.reader(content, delimiter=delimiter, strict=True), path)
    header = [name.strip() for name in next(rows, (1, []))[1]]
    if duplicates := [name for name, count in Counter(header).items() if count > 1]:
        raise ValueError(f"{path}, line 1: the column `{duplicates[0]}` occurs twice. Rename or remove one.")
    for line, row in rows:
        location = f"{path}, line {line}"
        if row and len(row) != len(header):
            raise ValueError(
                f"{location}: {len(row)} values under a header of {len(header)}. Put a text that holds a "
                f'{ {",": "comma", ";": "semicolon"}.get(delimiter, "tab") } into "quotation marks".'
            )
        if row:
            yield location, dict(zip(header, row, strict=True))


def _number_rows(reader: Any, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield every row of a reader of CSV with the number of its first line."""
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        repair = "Look for a quotation mark that is not closed."
        raise ValueError(f"{path}, line {line}: not CSV ({error}). {repair}") from None
