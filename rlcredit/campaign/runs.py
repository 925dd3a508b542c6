"""What a run has left on disk: whether it can be continued, how far it is, what it has evaluated."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlcredit.campaign.recorded import read_evaluation_file
from rlcredit.campaign.run_spec import RunSpec
from rlcredit.inputs.shapes import read_stored_json
from rlcredit.run_folder.checkpoint_files import find_newest_checkpoint, read_checkpoint
from rlcredit.run_folder.layout import RunFolder

NUMBER = (float, type(None))
STANDING = dict.fromkeys(("step?", "step_seconds?", "validation_seconds?", "solve_rate?", "held_out?"), NUMBER)


def can_continue_run(spec: RunSpec, evaluations: Sequence[int]) -> bool:
    """Whether a run can go on where its newest intact checkpoint was written, with nothing missing before it.

    Args:
        spec: the run.
        evaluations: steps after which it is evaluated.

    """
    path, _ = find_newest_checkpoint(spec.run_folder.checkpoints)
    if path is None:
        return False
    try:
        checkpoint = read_checkpoint(path)
    except ValueError:
        return False
    step = checkpoint["global_step"]
    owed = [step] if checkpoint.get("evaluation_owed") else []
    return all(read_run_evaluation(spec, due) is not None for due in evaluations if due <= step and due not in owed)


def read_run_evaluation(spec: RunSpec, step: int) -> dict[str, Any] | None:
    """Return a held-out evaluation of a run, None if it has not been made."""
    path = spec.run_folder.evaluation_file(step)
    return read_evaluation_file(path) if path.is_file() else None


def read_run_status(spec: RunSpec) -> dict[str, Any]:
    """Return the status that a run has written; empty before it has written one."""
    path = spec.run_folder.status
    return read_stored_json(path, STANDING, "Remove it.") if path.is_file() else {}


def read_log_tail(folder: Path, count: int = 3) -> list[str]:
    """Return the last lines of the log of the run in a folder."""
    return RunFolder(folder).log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-count:]
