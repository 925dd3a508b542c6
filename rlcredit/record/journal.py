"""An append-only file of complete lines; lines that the disk refuses wait in memory."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlcredit.base.files import write_durably
from rlcredit.base.messages import warn_once

Entry = dict[str, Any]


class Journal:
    """Append entries to a file; one process writes, any thread or process may read.

    Args:
        path: Path of the file; its content up to ``length`` is kept.
        length: Bytes from which to go on; after the last whole line if None.

    Raises:
        ValueError: the file holds less than that.

    """

    def __init__(self, path: Path, length: int | None = None) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_nlink > 1:  # a copy of the folder by hard links would be written to as well
            write_durably(path, lambda file: file.write(path.read_bytes()))
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        size = os.fstat(self._file).st_size
        if length is not None and length > size:
            raise ValueError(
                f"{path} holds {size} bytes of the {length} that the checkpoint has seen. Restore the file, or begin "
                "anew with --replace instead of --ckpt_path."
            )
        if length and os.pread(self._file, 1, length - 1) != b"\n":
            raise ValueError(
                f"{path} is not the record that the checkpoint has seen. Restore the file, or begin anew with "
                "--replace instead of --ckpt_path."
            )
        self.length = _find_whole_length(path) if length is None else length
        self._waiting: list[bytes] = []
        os.ftruncate(self._file, self.length)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add a line. If the disk refuses it, it is tried again with the next one."""
        self._waiting.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self._write()

    def sync(self) -> int:
        """Wait until the disk has every line; return the length of the file.

        Raises:
            OSError: the disk does not take them.

        """
        self._write()
        os.fsync(self._file)
        if self._waiting:
            raise OSError(f"{self.path} cannot be written.")
        return self.length

    def _write(self) -> None:
        try:
            while self._waiting:
                line = self._waiting[0]
                size = os.pwrite(self._file, line, self.length)
                if size < len(line):
                    os.ftruncate(self._file, self.length)
                    raise OSError(f"the disk took {size} of {len(line)} bytes")
                self.length += size
                del self._waiting[0]
        except OSError as error:
            warn_once(f"{self.path} cannot be written ({error}). The missing lines are kept in memory.")


def read_journal_entries(path: Path, start: int = 0) -> Iterator[tuple[Entry, int]]:
    """Yield the whole lines of a journal, each with the byte at which the next one begins.

    Args:
        path: Path of the file; without a file nothing is yielded.
        start: Byte at which a line begins.

    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        file.seek(start)
        place = start
        for line in file:
            if not line.endswith(b"\n"):
                return
            place += len(line)
            yield json.loads(line), place


def _find_whole_length(path: Path) -> int:
    """Return the length of a file up to the last line that is whole."""
    content = path.read_bytes()
    return content.rfind(b"\n") + 1
