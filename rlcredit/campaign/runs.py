"""One run by what it leaves: whether it can be continued, where it stands, what came of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlcredit.campaign.cell import Cell
from rlcredit.campaign.recorded import held_out_outcome
from rlcredit.campaign.shapes import stored
from rlcredit.checkpoint_files import newest, read
from rlcredit.run_folder import RunFolder

NUMBER = (float, type(None))
STANDING = dict.fromkeys(("step?", "step_seconds?", "validation_seconds?", "solve_rate?", "held_out?"), NUMBER)


def continuable(cell: Cell, evaluations: Sequence[int]) -> bool:
    """Whether a run can go on where its newest intact checkpoint was written, with nothing missing before it.

    Args:
        cell: the run.
        evaluations: steps after which it is evaluated.

    """
    path, _ = newest(cell.run.checkpoints)
    if path is None:
        return False
    try:
        checkpoint = read(path)
    except ValueError:
        return False
    step = checkpoint["global_step"]
    owed = [step] if checkpoint.get("evaluation_owed") else []
    return all(outcome(cell, due) is not None for due in evaluations if due <= step and due not in owed)


def outcome(cell: Cell, step: int) -> dict[str, Any] | None:
    """Return a held-out evaluation of a run, None if it has not been made."""
    path = cell.run.evaluation(step)
    return held_out_outcome(path) if path.is_file() else None


def standing(cell: Cell) -> dict[str, Any]:
    """Return where a run says it is; nothing before it says so."""
    path = cell.run.standing
    return stored(path, STANDING, "Remove it.") if path.is_file() else {}


def last_words(folder: Path, count: int = 3) -> list[str]:
    """Return the last lines of what the run in a folder said."""
    return RunFolder(folder).log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-count:]
