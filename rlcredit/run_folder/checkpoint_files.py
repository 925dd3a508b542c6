"""Checkpoint files: check, list and read them without running any code in them."""

import hashlib
import math
import os
import re
import warnings
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO

import torch

from rlcredit.run_folder.layout import LAST_CHECKPOINT

_SEAL_PREFIX = b"rlcredit sha256 "
"""Start of the archive comment of a checkpoint; the digest follows."""

_SEALED = len(_SEAL_PREFIX) + 64
_LENGTH = _SEALED.to_bytes(2, "little")
"""The field before an archive's comment, which says how long it is."""


def write_sealed_checkpoint(checkpoint: dict[str, Any], file: BinaryIO) -> None:
    """Write a checkpoint, followed by the digest of all its bytes.

    Args:
        checkpoint: Content of tensors and plain Python.
        file: File open for reading and writing.

    """
    torch.save(checkpoint, file)
    file.flush()
    size = file.seek(0, os.SEEK_END) - len(_LENGTH)
    digest = _digest_leading_bytes(file, size)
    file.seek(size)
    file.write(_LENGTH + _SEAL_PREFIX + digest)


def find_checkpoint_damage(path: Path) -> str | None:
    """Return the damage of a checkpoint file; None if it is intact."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END) - _SEALED - len(_LENGTH)
            file.seek(max(size, 0))
            seal = file.read()
            if size < 0 or not seal.startswith(_LENGTH + _SEAL_PREFIX):
                return "it is cut short, or no checkpoint of a run"
            return None if seal.endswith(_digest_leading_bytes(file, size)) else "its checksum is wrong"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def _digest_leading_bytes(file: BinaryIO, size: int) -> bytes:
    file.seek(0)
    sha256 = hashlib.sha256()
    while size > 0 and (part := file.read(min(size, 2**20))):
        sha256.update(part)
        size -= len(part)
    return sha256.hexdigest().encode()


_UNREADABLE_ERRORS = (
    *(UnpicklingError, RuntimeError, EOFError, OSError, ValueError, TypeError, LookupError, AttributeError),
    *(AssertionError, ArithmeticError, MemoryError, ImportError, zipfile.BadZipFile, NotImplementedError),
)
"""What torch raises of bytes that are no checkpoint."""

_NAMED = re.compile(r"step=(\d{1,15})$")

_ENTRY_TYPES = {"state_dict": dict, "parameters": dict, "global_step": int, "run_name": str}
"""Of the entries that a run is continued by."""


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint without running any code in it.

    Raises:
        ValueError: it is damaged, or not a checkpoint of a run.

    """
    if problem := find_checkpoint_damage(path):
        raise ValueError(f"{path} is damaged: {problem}.")
    try:
        with zipfile.ZipFile(path) as archive:
            if any(part.file_size > part.compress_size for part in archive.infolist()):
                raise ValueError("its parts are compressed, which no checkpoint's are")
        with warnings.catch_warnings(action="ignore"):  # of unusual pickles, which the error names
            content = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE_ERRORS as error:
        detail = f": {error}" if type(error) is ValueError else ""
        raise ValueError(f"{path} is not a checkpoint ({type(error).__name__}{detail}).") from None
    if not isinstance(content, dict) or type(content.get("global_step")) is not int:
        raise ValueError(f"{path} is not a checkpoint of a run.")
    for name, kind in _ENTRY_TYPES.items():
        if not isinstance(content.get(name, kind()), kind):
            raise ValueError(f"{path} is not a checkpoint of a run: {name} is {content[name]!r:.80}.")
    return content


def find_newest_checkpoint(folder: Path) -> tuple[Path | None, list[str]]:
    """Return the newest checkpoint of a folder that is intact, and what is wrong with those newer than it.

    The one of the latest step comes first, whatever the clock said when it was written, and ``last.ckpt`` before the
    file that it is a second name of.
    """
    paths = sorted(
        folder.glob("*.ckpt"),
        key=lambda path: (_find_checkpoint_step(path), path.name == LAST_CHECKPOINT),
        reverse=True,
    )
    problems: list[str] = []
    for path in paths:
        if (problem := find_checkpoint_damage(path)) is None:
            return path, problems
        problems.append(f"{path} is damaged: {problem}.")
    return None, problems


def _find_checkpoint_step(path: Path) -> float:
    """Return the step of a checkpoint, from its name if that says it; infinity if nothing does, so that it is named."""
    twins = [path, *(sibling for sibling in path.parent.glob("*.ckpt") if sibling.exists() and sibling.samefile(path))]
    steps = [int(match[1]) for twin in twins if (match := _NAMED.search(twin.stem))]
    try:
        return steps[0] if steps else read_checkpoint(path)["global_step"]
    except ValueError:
        return math.inf
