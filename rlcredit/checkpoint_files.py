"""Files of checkpoints: which are whole, which is newest, and what one holds; no code in one is ever run."""

import hashlib
import os
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO

import torch

LAST = "last.ckpt"

SEAL = b"rlcredit sha256 "
"""Begins the comment of the archive that a checkpoint is; the digest follows."""

_SEALED = len(SEAL) + 64
_LENGTH = _SEALED.to_bytes(2, "little")
"""The field before an archive's comment, which says how long it is."""


def save(checkpoint: dict[str, Any], file: BinaryIO) -> None:
    """Write a checkpoint, and after it the digest of every byte.

    Args:
        checkpoint: tensors and plain Python.
        file: open for reading and writing.

    """
    torch.save(checkpoint, file)
    file.flush()
    size = file.seek(0, os.SEEK_END) - len(_LENGTH)
    digest = _digest(file, size)
    file.seek(size)
    file.write(_LENGTH + SEAL + digest)


def damage(path: Path) -> str | None:
    """Say what is wrong with a checkpoint file; None if every byte is the one that was written."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END) - _SEALED - len(_LENGTH)
            file.seek(max(size, 0))
            seal = file.read()
            if size < 0 or not seal.startswith(_LENGTH + SEAL):
                return "it is cut short, or no checkpoint of a run"
            return None if seal.endswith(_digest(file, size)) else "its checksum is wrong"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def _digest(file: BinaryIO, size: int) -> bytes:
    file.seek(0)
    found = hashlib.sha256()
    while size > 0 and (part := file.read(min(size, 2**20))):
        found.update(part)
        size -= len(part)
    return found.hexdigest().encode()


def read(path: Path) -> dict[str, Any]:
    """Read a checkpoint without running any code in it.

    Raises:
        ValueError: it is damaged, or not a checkpoint of a run.

    """
    if problem := damage(path):
        raise ValueError(f"{path} is damaged: {problem}.")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"{path} is not a checkpoint ({type(error).__name__}).") from None
    if not isinstance(content, dict) or type(content.get("global_step")) is not int:
        raise ValueError(f"{path} is not a checkpoint of a run.")
    return content


def newest(folder: Path) -> tuple[Path | None, list[str]]:
    """Return the newest checkpoint of a folder that is intact, and what is wrong with those newer than it.

    ``last.ckpt`` comes before all others, which come by the time they were written.
    """
    found = sorted(folder.glob("*.ckpt"), key=lambda path: (path.name == LAST, path.stat().st_mtime_ns), reverse=True)
    damaged: list[str] = []
    for path in found:
        if (problem := damage(path)) is None:
            return path, damaged
        damaged.append(f"{path} is damaged: {problem}.")
    return None, damaged
