"""Files of checkpoints: which are whole, which is newest, and what one holds; no code in one is ever run."""

import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

LAST = "last.ckpt"


def damage(path: Path) -> str | None:
    """Say what is wrong with a checkpoint file; None if every part of it has the checksum it was written with."""
    try:
        with zipfile.ZipFile(path) as parts:
            broken = parts.testzip()
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, ValueError, OSError) as error:
        return f"it is cut short or no checkpoint at all ({type(error).__name__})"
    except Exception as error:  # noqa: BLE001  (a flipped bit in a header can make the reader raise anything)
        return f"it cannot be read ({type(error).__name__})"
    return f"the checksum of its part {broken} is wrong" if broken else None


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
