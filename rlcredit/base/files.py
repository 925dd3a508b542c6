"""Files: written completely or not at all, locked while written, and refused if they are not regular files."""

import contextlib
import csv
import fcntl
import hashlib
import io
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from rlcredit.base.messages import find_closest_name


def write_atomically(path: Path, text: str) -> None:
    """Write a file under a temporary name, sync it to disk, and rename it.

    Args:
        path: File to write, overwritten if it exists; its folder is made if need be.
        text: Content, written as UTF-8.

    """
    write_durably(path, lambda file: file.write(text.encode()))


def write_durably(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Yield a temporary path for a file; at the end sync it to disk and rename it.

    Args:
        path: File to write, overwritten if it exists; its folder is made if need be.
        write: Function that is given the open file.

    Raises:
        OSError: the disk did not take it; what was at ``path`` is still there, and nothing else is left.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = _unfinished_path(path)
    draft.unlink(missing_ok=True)  # a link of this name in a folder from elsewhere would be followed
    try:
        with draft.open("w+b") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def suggest_path(path: Path) -> str:
    """Return the question after the file or folder beside it that a path may mean; empty if it exists, or none does."""
    try:
        names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() and not path.exists() else []
    except (OSError, ValueError):  # a folder that may not be read, or a path that no file can have
        names = []
    matches = [name for name in sorted(names) if name.startswith(path.name)]
    close = matches[0] if matches else find_closest_name(path.name, names, 0.75)
    return f" Did you mean {path.with_name(close)}?" if path.name and close else ""


def replace_file(path: Path, text: str) -> None:
    """Replace a small file without syncing: a crash of the machine may bring back the old one."""
    draft = _unfinished_path(path)
    draft.unlink(missing_ok=True)  # a link of this name in a folder from elsewhere would be followed
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


@contextlib.contextmanager
def write_folder_atomically(folder: Path) -> Iterator[Path]:
    """Yield a temporary path for a folder; at the end rename the folder.

    Args:
        folder: Folder that does not exist, or is empty.

    Yields:
        Where to write. What was written is removed if an error or a signal ends it.

    """
    draft = _unfinished_path(folder)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        yield draft
        os.replace(draft, folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def render_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    r"""Return rows with the same columns as CSV, in which no text is a formula; expects at least one row.

    Example:
        >>> render_csv([{"step": 1, "loss": -0.5, "name": "=1+1", "gain": "-0.5"}])
        "step,loss,name,gain\n1,-0.5,'=1+1,-0.5\n"

    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(map(_escape_formula, rows[0]))
    writer.writerows([_escape_formula(row[name]) for name in rows[0]] for row in rows)
    return buffer.getvalue()


_FORMULA = re.compile(r"\s*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)")


def _escape_formula(cell: Any) -> Any:
    """Return a cell that spreadsheets read as text or as a number, never as a formula."""
    formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if formula else cell


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk, so that renamed files keep theirs after a crash."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _unfinished_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def is_existing_file(path: Path) -> bool:
    r"""Whether a path is a file; False for a name that no file can have.

    Example:
        >>> is_existing_file(Path("x" * 300)), is_existing_file(Path("a\0b"))
        (False, False)

    """
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold a lock against other processes; the system releases it however this process ends.

    Args:
        path: Path of a file that is nothing but the lock; its folder is made if need be.

    Raises:
        BlockingIOError: another process has it.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:  # a link of this name must not empty another file
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def find_path_fault(path: Path, folder: Path) -> str | None:
    """Return the fault of a path inside a folder: a link that leads out, or neither file nor folder.

    Args:
        path: Path inside the folder; nothing is wrong with one that does not exist.
        folder: Folder that it must not lead out of.

    """
    if not os.path.lexists(path):
        return None
    real = path.resolve()
    if not real.is_relative_to(folder.resolve()):
        return "a link that leads out of the folder"
    return None if real.is_file() or real.is_dir() else "no file"


def file_sha256(path: Path) -> str:
    """Hash a file's content, reading it in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_KIND_NAMES = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_SYSTEM_FOLDERS = ("proc", "sys")
"""Top-level folders whose files are generated while they are read."""


def find_special_kind(path: Path | str) -> str | None:
    """Name the kind of a path that is neither file nor folder; None for these, and if nothing exists.

    Example:
        >>> find_special_kind("/dev/zero"), find_special_kind("/proc/self/environ")
        ('a device', 'a part of the running system')
        >>> find_special_kind("configs"), find_special_kind("no/such/file")
        (None, None)

    """
    try:
        kind = _KIND_NAMES.get(stat.S_IFMT(Path(path).stat().st_mode))
        top_folder = Path(path).resolve().parts[1:2]
    except (OSError, ValueError):  # there is nothing, or no file can have this name
        return None
    return kind or ("a part of the running system" if top_folder and top_folder[0] in _SYSTEM_FOLDERS else None)


def refuse_special_files(config: Any, key: str = "") -> None:
    """Refuse a configuration that names a pipe, a device or the like: reading one may never end.

    Args:
        config: Configuration of mappings, lists and values.
        key: Dotted key of the place where they stand.

    Raises:
        ValueError: names the place and the repair.

    """
    if isinstance(config, str) and (kind := find_special_kind(config)):
        place = f"{key}: " if key else ""
        raise ValueError(f"{place}{config[:80]} is {kind}, not a file. Write its content into a file and name that.")
    if isinstance(config, Mapping):
        for name, value in config.items():
            refuse_special_files(value, f"{key}.{name}".lstrip("."))
    elif isinstance(config, list | tuple):
        for place, value in enumerate(config):
            refuse_special_files(value, f"{key}[{place}]")
