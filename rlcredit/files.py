"""Files that are whole or not there at all, whatever kills the process that writes them."""

import hashlib
import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write a file under another name, wait until the disk has it, and give it its name.

    Args:
        path: overwritten if it exists; its folder is made if need be.
        text: written as UTF-8.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    with unfinished.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)  # the name itself is on the disk only now
        os.close(folder)


def is_file(path: Path) -> bool:
    r"""Whether there is a file of a name; of one that no file can have, there is none.

    Example:
        >>> is_file(Path("x" * 300)), is_file(Path("a\0b"))
        (False, False)

    """
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def file_sha256(path: Path) -> str:
    """Identify a file by its content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
