"""The session of a run: its folder's lock, its checkpoint, record and status, and the place of its results."""

import contextlib
import dataclasses
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightning.pytorch import Trainer

from rlcredit.base.exit_status import RunStopped
from rlcredit.base.interrupts import SignalInterrupt
from rlcredit.base.messages import print_message
from rlcredit.outputs.run_identity import RunIdentity
from rlcredit.record import MLflowDestination, RunRecord
from rlcredit.record.artifacts import write_waiting_texts
from rlcredit.record.mlflow_client import SQLITE_PREFIX
from rlcredit.run_folder.checkpoint_files import read_checkpoint
from rlcredit.run_folder.continuation import explain_continuation
from rlcredit.run_folder.layout import RunFolder
from rlcredit.supervision.graceful_stop import SignalHandler


def describe_run_results(folder: RunFolder, destination: MLflowDestination | None) -> str:
    """Return the places of a finished run's folder and adapter, and the command that opens its page in MLflow.

    Args:
        folder: Folder of the run.
        destination: Destination that the record was delivered to; None if it was not delivered.

    Example:
        >>> print(describe_run_results(RunFolder("runs/mine-seed0"), None))
        results are in runs/mine-seed0, the adapter in runs/mine-seed0/adapter

    """
    lines = [f"results are in {folder.path}, the adapter in {folder.adapter}"]
    lines += [f"open {folder.last_heatmap} in a browser to see its credit"] if folder.last_heatmap else []
    if destination is not None:
        local = destination.tracking_uri is not None and destination.tracking_uri.startswith(SQLITE_PREFIX)
        address = f"mlflow ui --backend-store-uri {destination.tracking_uri}" if local else destination.shown_address
        lines.append(
            f"in MLflow: run {destination.shown_name or destination.run_name} of experiment "
            f"{destination.experiment_name}, {address}"
        )
        lines += [f"its page: {destination.page}"] if destination.page else []
    return "\n".join(lines)


_HURRY_SECONDS = 2.0
"""Seconds that a run still waits for MLflow at its end, once a signal has interrupted the wait."""

_MAX_LISTED_FILES = 3
"""Names of files that a message lists."""


@dataclasses.dataclass
class RunSession:
    """The session of one run from start to end.

    Args:
        name: Name of the run.
        folder: Folder of the run.
        checkpoints: Folder of its checkpoints.
        path: Checkpoint that the run continues from, None if it begins.
        checkpoint: Content of that checkpoint.
        to: Destination of the run's record; it is not delivered if None, and has not been if that is so at the end.
        replaces: Whether it was asked to replace what lies in its folder.
        restarts: Whether it was asked to continue if it can and begin otherwise, so that a run without a checkpoint
            begins anew.

    """

    name: str
    folder: RunFolder
    checkpoints: Path
    path: Path | None
    checkpoint: Mapping[str, Any]
    to: MLflowDestination | None
    replaces: bool = False
    restarts: bool = False

    @contextmanager
    def hold_run(self, trainer: Trainer, identity: RunIdentity, signals: SignalHandler) -> Iterator[None]:
        """Reserve the folder for this run, open its record, and close it with the run's final status.

        Raises:
            ValueError: another process writes in the folder, or the record is not that of the checkpoint.
            SystemExit: a signal has interrupted the run; a message has said how to continue it.

        """
        with self.folder.lock_folder():
            record, status = self._opened(), "FAILED"
            identity.record = record
            trainer.loggers = [record, *trainer.loggers]
            try:
                yield
                signals.begin_end()
                status = "FINISHED"
            except SignalInterrupt as interrupted:
                signals.begin_end()
                status = "KILLED"
                print_message(
                    f"\ninterrupted by {interrupted} after step {trainer.global_step}; {self._explain_way_on()}"
                )
                raise SystemExit(interrupted.status) from None
            except RunStopped as stopped:
                advice = self._explain_way_on() if stopped.can_go_on else ""
                stopped.advice = f"{advice[:1].upper()}{advice[1:]}"
                raise
            finally:
                signals.begin_end()
                write_waiting_texts()
                try:
                    with signals.allow_interrupts():
                        has_arrived = record.close(status)
                except SignalInterrupt:  # a signal during the wait for MLflow only shortens it
                    has_arrived = record.close(status, _HURRY_SECONDS)
                self.to = self.to if has_arrived else None
                self._forget_former()

    def _explain_way_on(self) -> str:
        """Return the advice for going on from what the run has kept."""
        leaves = bool(self.folder.describe_results(self.checkpoints))
        return explain_continuation(self.checkpoints, sys.argv[1:], leaves and not (self.replaces or self.restarts))

    @property
    def _inside(self) -> bool:
        """Whether the continued checkpoint lies in the folder of the run."""
        homes = {self.folder.path.resolve(), self.checkpoints.resolve()}
        return self.path is not None and bool(homes & set(self.path.resolve().parents))

    @property
    def _length(self) -> int | None:
        """Bytes of the record to continue; None for a new record."""
        is_continuation = self._inside and self.checkpoint.get("run_name") == self.name
        return self.checkpoint.get("record") if is_continuation else None

    def refuse_overwriting(self) -> None:
        """Refuse to overwrite the files of another run, or of another program.

        Raises:
            ValueError: with what lies there, and the ways on; or with a link that leads out of the folder.

        """
        self.folder.refuse_outward_links()
        path = self.folder.path
        if self._length is not None:
            later_files = [] if self.replaces else [file for file, step in self._checkpoints() if step > self._step]
            if later_files:
                raise ValueError(
                    f"{path} holds {later_files[-1].name}, which a run that goes back to step {self._step} removes. "
                    "Go on "
                    "from the newest (--ckpt_path last), let another --condition go on from here, or say --replace."
                )
            return
        results = self.folder.describe_results(self.checkpoints)
        steps_done, steps = self.folder.read_progress() or (0, 0)
        is_finished = 0 < steps <= steps_done
        if self.restarts and not is_finished and not self.folder.adapter.exists():
            results = []
        if not self.folder.has_begun_run and (
            file_names := [entry.name for entry in self.folder.list_contents(self.checkpoints)]
        ):
            raise ValueError(
                f"{path} is not the folder of a run, and holds {', '.join(sorted(file_names)[:_MAX_LISTED_FILES])}, "
                "which a run would "
                "write over. Choose a folder with --out, or checkpoints with --checkpoint.dirpath."
            )
        if self.folder.former_run.exists():
            results.append(f"a run that was to be replaced, in {self.folder.former_run}")
        if results and not self.replaces:
            run = f"a run of {steps_done} of {steps} steps" if steps > 0 else "a run"
            option = "--condition NAME" if path == Path("runs") / self.name else "--out FOLDER"
            longer = " and more --trainer.max_steps" if is_finished else ""
            continuation = f" Or go on with this one: --ckpt_path last{longer}." if any(self._checkpoints()) else ""
            raise ValueError(
                f"{path} holds {run}, last written {self.folder.describe_last_write(self.checkpoints)}: "
                f"{'; '.join(results)}. Give the new run a place of its own: {option}.{continuation} Or replace this "
                "one: --replace."
            )

    @property
    def _step(self) -> int:
        return self.checkpoint.get("global_step", 0)

    def _checkpoints(self) -> Iterator[tuple[Path, int]]:
        """Yield the readable checkpoints of the folder, with their steps."""
        for path in sorted(self.checkpoints.glob("*.ckpt")):
            with contextlib.suppress(ValueError):  # a damaged one is reported when a run continues from it
                yield path, read_checkpoint(path)["global_step"]

    def _opened(self) -> RunRecord:
        """Continue the record of the run, or make room for a new one."""
        length = self._length
        former = MLflowDestination.load(self.folder.tracking)
        self.refuse_overwriting()
        if length is None and not self._inside:
            self._make_room()
        if self.to and former and former.tracking_uri == self.to.tracking_uri:
            self._take_over(former, self.to, length)
        record = RunRecord(self.folder, length, self.to)
        if length is not None:
            self._go_back(self._step)
        return record

    def _make_room(self) -> None:
        """Move a run that is to be replaced aside until this one has a checkpoint; delete leftovers without value."""
        if self.replaces and (self.folder.describe_results(self.checkpoints) or self.folder.former_run.exists()):
            self.folder.move_to_former(self.checkpoints)
            print(f"{self.folder.former_run} keeps the run that this one replaces until this one has a checkpoint.")
        elif self.folder.has_begun_run:
            print(f"{self.folder.path} holds a run without a checkpoint, which this one replaces.")
            self.folder.remove_contents(self.checkpoints)

    def _forget_former(self) -> None:
        """Delete the replaced run once this one has a checkpoint."""
        if self.folder.former_run.exists() and any(self._checkpoints()):
            shutil.rmtree(self.folder.former_run)

    def _go_back(self, step: int) -> None:
        """Delete everything later than the step from which the run continues."""
        self.folder.remove_later_evaluations(step)
        for path, file_step in list(self._checkpoints()):
            if file_step > step:
                path.unlink()

    @staticmethod
    def _take_over(former: MLflowDestination, destination: MLflowDestination, length: int | None) -> None:
        """Continue the folder's MLflow run if this run continues its record; otherwise have it closed."""
        destination.closes, destination.removes = former.closes, former.removes
        if length is not None:
            destination.run_id, destination.arrived = former.run_id, min(former.arrived, length)
        elif former.run_id is not None:
            destination.closes.append(former.run_id)
            return
        destination.key = former.key
