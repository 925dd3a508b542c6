"""One run by what it leaves: whether it can be continued, where it stands, what came of it."""

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from rlcredit.campaign.cell import Cell
from rlcredit.campaign.process import LOG, PROCESS
from rlcredit.campaign.recorded import held_out_outcome
from rlcredit.campaign.shapes import stored
from rlcredit.tracking.held_out import file_name
from rlcredit.tracking.standing import FILE

NUMBER = (float, type(None))
STANDING = dict.fromkeys(("step?", "step_seconds?", "validation_seconds?", "solve_rate?", "held_out?"), NUMBER)


def continuable(cell: Cell, evaluations: Sequence[int]) -> bool:
    """Whether a run can go on where its last checkpoint was written, with nothing missing before it.

    A checkpoint is written before the evaluation at the same step. A run that was killed between the two cannot make
    up for it, because Lightning takes the step as done: it begins anew.

    Args:
        cell: the run.
        evaluations: steps after which it is evaluated.

    """
    try:
        step = torch.load(cell.checkpoint, map_location="cpu", weights_only=True)["global_step"]
    except (FileNotFoundError, UnpicklingError, RuntimeError, EOFError, zipfile.BadZipFile):
        return False
    return all(outcome(cell, due) is not None for due in evaluations if due <= step)


def cleared(cell: Cell) -> None:
    """Remove what an attempt has left that is not continued, except what it said."""
    for path in cell.folder.iterdir() if cell.folder.is_dir() else ():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in (LOG, PROCESS):
            path.unlink()


def outcome(cell: Cell, step: int) -> dict[str, Any] | None:
    """Return a held-out evaluation of a run, None if it has not been made."""
    path = cell.folder / file_name(step)
    return held_out_outcome(path) if path.is_file() else None


def standing(cell: Cell) -> dict[str, Any]:
    """Return where a run says it is; nothing before it says so."""
    path = cell.folder / FILE
    return stored(path, STANDING, "Remove it.") if path.is_file() else {}


def last_words(folder: Path, count: int = 3) -> list[str]:
    """Return the last lines of what the run in a folder said."""
    return (folder / LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-count:]
