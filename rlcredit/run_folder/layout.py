"""The files in the folder of a run, and their names."""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from rlcredit.base.files import find_path_fault, lock_file

LAST = "last.ckpt"
"""The second name of the newest checkpoint."""

_STEP = "step_{:06d}"

SHOWN = ("completions", "heatmap", "postmortem", "probes", "signal", "tokens")
"""Folders of tables, pictures and pages, of which each callback names the files in its own."""


class RunFolder:
    """The folder of one run: the only place that knows the names in it.

    Args:
        path: Path of the folder; it need not exist. ``..`` in it is resolved by its words, as Lightning does.

    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(os.path.normpath(path))

    # What the run is.

    @property
    def config(self) -> Path:
        """The configuration as executed, defaults and nulls included."""
        return self.path / "config.yaml"

    @property
    def parameters(self) -> Path:
        """Arguments of the instantiated objects."""
        return self.path / "parameters.json"

    @property
    def declared_config(self) -> Path:
        """Configuration as a campaign declared it."""
        return self.path / "declared.yaml"

    # What the run tells.

    @property
    def record(self) -> Path:
        """All metrics and the names of all files, in the order they came; what trackers get is sent from here."""
        return self.path / "record.jsonl"

    @property
    def tracking(self) -> Path:
        """Where the record is sent, and how much of it has arrived."""
        return self.path / "tracking.json"

    @property
    def status(self) -> Path:
        """Progress of the run, for observers."""
        return self.path / "status.json"

    @property
    def log(self) -> Path:
        """Output of a run of a campaign."""
        return self.path / "log.txt"

    # What the run leaves.

    @property
    def held_out(self) -> Path:
        """Folder of the evaluations."""
        return self.path / "held_out"

    def evaluation_file(self, step: int) -> Path:
        """Return the file of the evaluation after a step."""
        return self.held_out / f"{_STEP.format(step)}.json"

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

    @property
    def learning_curve(self) -> Path:
        """Held-out pass@1 over the steps, as a picture."""
        return self.path / "learning_curve.png"

    @property
    def adapter(self) -> Path:
        """Folder of the trained adapter, in PEFT's format."""
        return self.path / "adapter"

    def postmortem_file(self, step: int, rank: int = 0) -> Path:
        """Return the file of a batch that no update could be made of, as one of several processes had it."""
        return self.path / "postmortem" / f"{_STEP.format(step)}{f'_rank{rank}' if rank else ''}.pt"

    # From which it can be continued.

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def last_checkpoint(self) -> Path:
        """The newest of them."""
        return self.checkpoints / LAST

    # Who writes here.

    @property
    def lock(self) -> Path:
        """Locked while a process writes here."""
        return self.path / "lock"

    @property
    def process(self) -> Path:
        """Process of a campaign that writes here."""
        return self.path / "process.json"

    # What becomes of it when another run is to be written here.

    @property
    def former_run(self) -> Path:
        """Folder of the run that was here before, until the one that replaces it has a checkpoint."""
        return self.path / "former"

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
        folders = [self.held_out, self.checkpoints, self.former_run, *(self.path / name for name in SHOWN)]
        folders += [self.adapter, self.adapter.with_name(f"{self.adapter.name}.part")]
        for path in (*files, *folders, *(inside for folder in folders for inside in folder.rglob("*"))):
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
        for name in SHOWN:
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
            inside = path.relative_to(self.path) if path.is_relative_to(self.path) else Path("checkpoints", path.name)
            (self.former_run / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, self.former_run / inside)
        self._remove_emptied()

    def _remove_emptied(self) -> None:
        for folder in (self.held_out, self.checkpoints, *(self.path / name for name in SHOWN)):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def describe_results(self, checkpoints: Path | None = None) -> list[str]:
        """Name contents worth keeping: an adapter, checkpoints, evaluations of a policy that has learned.

        Args:
            checkpoints: Folder of the run's checkpoints, where that is another one.

        """
        folder = checkpoints or self.checkpoints
        saved = sorted((path.name for path in folder.glob("*.ckpt")), key=lambda name: (len(name), name))
        learned = [step for step in self.evaluated_steps() if step > 0]
        return [
            *(["its adapter"] if self.adapter.exists() else []),
            *([f"{', '.join(saved)} in {folder}"] if saved else []),
            *([f"evaluations up to step {learned[-1]}"] if learned else []),
        ]

    def read_progress(self) -> tuple[int, int] | None:
        """Return how many steps have been taken, and of how many; None if nothing says so."""
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
        for later in (evaluated for evaluated in self.evaluated_steps() if evaluated > step):
            self.evaluation_file(later).unlink()

    @contextlib.contextmanager
    def lock_folder(self, option: str = "--condition") -> Iterator[None]:
        """Keep other runs out; the system unlocks the folder when this process ends, however it ends.

        Args:
            option: Option that names another folder, for the message.

        Raises:
            ValueError: another process writes here.

        """
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(lock_file(self.lock))
            except BlockingIOError:
                raise ValueError(
                    f"another process writes to {self.path}. Wait for it or end it, or choose another {option}."
                ) from None
            yield
