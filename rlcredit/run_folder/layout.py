"""The files in the folder of a run, and their names."""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlcredit.base.files import find_path_fault, lock_file

LAST_CHECKPOINT = "last.ckpt"
"""The second name of the newest checkpoint."""

_STEP = "step_{:06d}"

_OUTPUT_FOLDERS = ("completions", "heatmap", "postmortem", "probes", "signal", "tokens")
"""Folders of tables, pictures and pages, of which each callback names the files in its own."""


class RunFolder:
    """The folder of one run: the only place that knows the names in it.

    Args:
        path: Path of the folder; it need not exist. ``..`` in it is resolved by its words, as Lightning does.

    Attributes:
        config: The configuration as executed, defaults and nulls included.
        parameters: Arguments of the instantiated objects.
        declared_config: Configuration as a campaign declared it.
        record: All metrics and the names of all files, in the order they came; what trackers get is sent from here.
        tracking: Destination of the record, and how much of it has arrived.
        status: Progress of the run, for observers.
        log: Output of a run of a campaign.
        held_out: Folder of the evaluations.
        learning_curve: Held-out pass@1 over the steps, as a picture.
        adapter: Folder of the trained adapter, in PEFT's format.
        checkpoints: Folder of the checkpoints.
        last_checkpoint: The newest checkpoint.
        lock: Locked while a process writes here.
        process: Process of a campaign that writes here.
        former_run: Folder of the run that was here before, until the one that replaces it has a checkpoint.

    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(os.path.normpath(path))
        self.config = self.path / "config.yaml"
        self.parameters = self.path / "parameters.json"
        self.declared_config = self.path / "declared.yaml"
        self.record = self.path / "record.jsonl"
        self.tracking = self.path / "tracking.json"
        self.status = self.path / "status.json"
        self.log = self.path / "log.txt"
        self.held_out = self.path / "held_out"
        self.learning_curve = self.path / "learning_curve.png"
        self.adapter = self.path / "adapter"
        self.checkpoints = self.path / "checkpoints"
        self.last_checkpoint = self.checkpoints / LAST_CHECKPOINT
        self.lock = self.path / "lock"
        self.process = self.path / "process.json"
        self.former_run = self.path / "former"

    def evaluation_file(self, step: int) -> Path:
        """Return the file of the evaluation after a step."""
        return self.held_out / f"{_STEP.format(step)}.json"

    def read_evaluation(self, step: int) -> dict[str, Any]:
        """Return the content of the evaluation after a step, unchecked."""
        return json.loads(self.evaluation_file(step).read_text(encoding="utf-8"))

    def evaluated_steps(self) -> list[int]:
        """Return the steps after which held-out questions have been asked, in order."""
        return sorted(int(path.stem.removeprefix("step_")) for path in self.held_out.glob("step_*.json"))

    def completions_file(self, step: int) -> Path:
        """Return the table of completions sampled after a step."""
        return self.path / "completions" / f"{_STEP.format(step)}.json"

    def heatmap_file(self, step: int) -> Path:
        """Return the page that colours completions sampled after a step by their credit."""
        return self.path / "heatmap" / f"{_STEP.format(step)}.html"

    @property
    def last_heatmap(self) -> Path | None:
        """Page of the latest step that has one, whichever callback has written it; None if there is none."""
        pages = self.path.glob("heatmap/*step_*.html")
        return max(pages, key=lambda page: (page.stem.rpartition("step_")[2], page.name), default=None)

    def postmortem_file(self, step: int, rank: int = 0) -> Path:
        """Return the file of a batch that no update could be made of, as one of several processes had it."""
        return self.path / "postmortem" / f"{_STEP.format(step)}{f'_rank{rank}' if rank else ''}.pt"

    @property
    def has_begun_run(self) -> bool:
        """Whether a run has been begun here."""
        return self.parameters.exists() or self.record.exists()

    def refuse_outward_links(self) -> None:
        """Refuse links that lead out of the folder, where a run would write or remove something.

        Raises:
            ValueError: names the link, and the repair.

        """
        files = (self.config, self.parameters, self.record, self.tracking, self.status, self.lock, self.learning_curve)
        folders = [self.held_out, self.checkpoints, self.former_run, *(self.path / name for name in _OUTPUT_FOLDERS)]
        folders += [self.adapter, self.adapter.with_name(f"{self.adapter.name}.part")]
        for path in (*files, *folders, *(descendant for folder in folders for descendant in folder.rglob("*"))):
            if fault := find_path_fault(path, self.path):
                raise ValueError(f"{path} is {fault}. A run writes only into its own folder: put a copy there instead.")

    def list_contents(self, checkpoints: Path | None = None) -> Iterator[Path]:
        """Yield only what a run has written here: people keep files of their own in folders.

        Args:
            checkpoints: Folder of the run's checkpoints, where that is another one.

        """
        for file in (self.config, self.parameters, self.record, self.status, self.learning_curve, self.adapter):
            if file.exists():
                yield file
        yield from (checkpoints or self.checkpoints).glob("*.ckpt")
        yield from self.held_out.glob("step_*.json")
        for name in _OUTPUT_FOLDERS:
            yield from (self.path / name).glob("*step_*")

    def remove_contents(self, checkpoints: Path | None = None) -> None:
        """Remove the contents; arguments as for :meth:`list_contents`."""
        for path in list(self.list_contents(checkpoints)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._remove_emptied()

    def move_to_former(self, checkpoints: Path | None = None) -> None:
        """Move the contents into :attr:`former_run`; arguments as for :meth:`list_contents`.

        Where a run is there already, what has come after it got no further than to its first checkpoint, and goes.
        """
        if self.former_run.exists() and not self.describe_results(checkpoints):
            self.remove_contents(checkpoints)
            return
        shutil.rmtree(self.former_run, ignore_errors=True)
        for path in list(self.list_contents(checkpoints)):
            is_inside = path.is_relative_to(self.path)
            target = self.former_run / (path.relative_to(self.path) if is_inside else Path("checkpoints", path.name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, target)
        self._remove_emptied()

    def _remove_emptied(self) -> None:
        for folder in (self.held_out, self.checkpoints, *(self.path / name for name in _OUTPUT_FOLDERS)):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def describe_results(self, checkpoints: Path | None = None) -> list[str]:
        """Name contents worth keeping: an adapter, checkpoints, evaluations of a policy that has learned.

        Args:
            checkpoints: Folder of the run's checkpoints, where that is another one.

        """
        folder = checkpoints or self.checkpoints
        names = sorted((path.name for path in folder.glob("*.ckpt")), key=lambda name: (len(name), name))
        steps = [step for step in self.evaluated_steps() if step > 0]
        return [
            *(["its adapter"] if self.adapter.exists() else []),
            *([f"{', '.join(names)} in {folder}"] if names else []),
            *([f"evaluations up to step {steps[-1]}"] if steps else []),
        ]

    def read_progress(self) -> tuple[int, int] | None:
        """Return the numbers of steps taken and of all steps; None if nothing says so."""
        try:
            status = json.loads(self.status.read_text(encoding="utf-8"))
            return int(status["step"]), int(status["steps"])
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def describe_last_write(self, checkpoints: Path | None = None) -> str:
        """Return when something was last written here, for people; arguments as for :meth:`list_contents`."""
        newest = max(path.stat().st_mtime for path in (self.path, *self.list_contents(checkpoints)) if path.exists())
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(newest))

    def remove_later_evaluations(self, step: int) -> None:
        """Remove the evaluations that were made after a step to which the run has gone back."""
        for evaluation_step in self.evaluated_steps():
            if evaluation_step > step:
                self.evaluation_file(evaluation_step).unlink()

    @contextlib.contextmanager
    def lock_folder(self, option: str = "--condition") -> Iterator[None]:
        """Keep other runs out; the system unlocks the folder when this process ends, however it ends.

        Args:
            option: Option that names another folder, for the message.

        Raises:
            ValueError: another process writes here.

        """
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(lock_file(self.lock))
            except BlockingIOError:
                raise ValueError(
                    f"another process writes to {self.path}. Wait for it or end it, or choose another {option}."
                ) from None
            yield
