"""Choose the checkpoint from which a run continues, and check that it belongs to the run."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcredit.base.files import suggest_path
from rlcredit.base.messages import print_message
from rlcredit.run_folder.checkpoint_files import find_newest_checkpoint, read_checkpoint
from rlcredit.run_folder.layout import LAST_CHECKPOINT, RunFolder


def resolve_ckpt_path(ckpt_path: str | None, folder: Path) -> tuple[Path | None, dict[str, Any]]:
    """Return the checkpoint to continue from and its content; None and an empty one if the run begins.

    Args:
        ckpt_path: File of a checkpoint, or a run folder for its newest intact one; ``last`` for the newest intact one
            of this run, ``auto`` for that or else none.
        folder: Folder of the run's checkpoints.

    Raises:
        ValueError: there is none, or it is damaged; with one that could be continued instead.

    """
    if ckpt_path is None:
        return None, {}
    if ckpt_path not in ("last", "auto"):
        path = Path(ckpt_path)
        if not path.is_dir():
            return path, _read_ckpt_path(path)
        run_checkpoints = RunFolder(path).checkpoints
        ckpt_path, folder = "last", run_checkpoints if run_checkpoints.is_dir() else path
    path, problems = find_newest_checkpoint(folder)
    for problem in problems if path else ():
        print_message(f"warning: {problem} Continuing from {path}.")
    if path is not None:
        return path, _read_ckpt_path(path)
    if ckpt_path == "last" or problems:
        advice = " ".join(problems) or "Leave out --ckpt_path to begin a run."
        raise ValueError(f"ckpt_path: there is no checkpoint {folder / LAST_CHECKPOINT}. {advice}")
    return None, {}


def _read_ckpt_path(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ValueError(f"ckpt_path: there is no checkpoint {path}.{suggest_path(path)}")
    try:
        return read_checkpoint(path)
    except ValueError as error:
        intact, _ = find_newest_checkpoint(path.parent)
        offer = f" {intact} is intact: continue with --ckpt_path {intact}." if intact else ""
        raise ValueError(f"ckpt_path: {error}{offer}") from None


def refuse_foreign_checkpoint(checkpoint: Mapping[str, Any], parameters: Mapping[str, Any], updates: int) -> None:
    """Refuse a checkpoint of a run with other parameters, or one inside a rollout.

    Args:
        checkpoint: Content of the checkpoint that is continued; empty if none is.
        parameters: Parameters that the objects of this run report.
        updates: Optimizer updates per rollout.

    Raises:
        ValueError: with what differs.

    """
    old_parameters = checkpoint.get("parameters", {})
    for name, value in parameters.items():
        if name != "max_steps" and old_parameters.get(name, value) != value:
            raise ValueError(
                f"ckpt_path: the checkpoint was made with {name} {old_parameters[name]!r}, but the configuration says "
                f"{value!r}. Continue it as it was, or start anew without ckpt_path."
            )
    if (step := checkpoint.get("global_step", 0)) % updates:
        raise ValueError(
            f"ckpt_path: the checkpoint was written after step {step}, inside a rollout of {updates} updates, "
            "which it does not hold. Continue from another one."
        )


def explain_continuation(folder: Path, args: Sequence[str], replaces: bool) -> str:
    """Return the advice for continuing a run that has ended early.

    Args:
        folder: Folder of the run's checkpoints.
        args: Arguments of the command line.
        replaces: Whether a run that begins anew has to replace what this one leaves.

    """
    path, _ = find_newest_checkpoint(folder)
    if path is None and replaces:
        return "no checkpoint has been saved yet, and the same command with --replace begins anew."
    if path is None:
        return "nothing has been saved yet, and the same command begins anew."
    words = shlex.join(["rlcredit", *_drop_checkpoint_options(args), "--ckpt_path", "last"])
    return f"to go on from step {read_checkpoint(path)['global_step']}: {words}"


def _drop_checkpoint_options(args: Sequence[str]) -> list[str]:
    """Return a command line without the checkpoint that it has gone on from, or the run that it has replaced.

    Example:
        >>> _drop_checkpoint_options(["fit", "--ckpt_path", "a.ckpt", "--replace", "--threads=1", "--ckpt_path=last"])
        ['fit', '--threads=1']

    """
    flags = ["", *args]
    return [
        word
        for flag, word in zip(flags, args, strict=False)
        if flag != "--ckpt_path" and word not in ("--ckpt_path", "--replace") and not word.startswith("--ckpt_path=")
    ]
