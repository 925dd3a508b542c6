"""The status of a run in one small file, which others may read while it runs."""

import json
import statistics
import time
from typing import Any, cast

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.files import replace_file
from rlcredit.base.lightning_private import read_datamodule
from rlcredit.record.artifacts import find_run_folder, warn_on_write_error
from rlcredit.tasks.task import Task


class RunStatus(Callback):
    """Write step, solve rate, latest held-out result and times of steps and validations to a file after each of them.

    A step is timed from the end of the one before to its own end, validations left out, so that sampling, which comes
    before any hook of a step, is part of it. The first rollout of a process is not timed: it warms up.
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.latest: dict[str, Any] = {"solve_rate": None, "held_out": None, "validation_seconds": None}
        self.last: float | None = None
        self.validating = 0.0

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock of the validation."""
        self.validating = time.perf_counter()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Store the held-out result, and subtract the validation's time from the step's."""
        duration = time.perf_counter() - self.validating
        self.last = None if self.last is None else self.last + duration
        held_out_set = cast("Task", read_datamodule(trainer)).held_out_sets[0]
        held_out = float(trainer.callback_metrics[held_out_set.name_metric("pass_at_1")])
        self.latest.update(held_out=held_out, validation_seconds=duration)
        self._write(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Store the step."""
        clock = time.perf_counter()
        self.seconds += [] if self.last is None else [clock - self.last]
        if self.last is not None or batch.update + 1 == pl_module.updates_per_rollout:
            self.last = clock
        self.latest["solve_rate"] = float(trainer.callback_metrics["train/solve_rate"])
        self._write(trainer)

    @rank_zero_only
    def _write(self, trainer: Trainer) -> None:
        mean_seconds = statistics.fmean(self.seconds) if self.seconds else None
        status = {"step": trainer.global_step, "steps": trainer.max_steps, "step_seconds": mean_seconds, **self.latest}
        path = find_run_folder(trainer).status
        with warn_on_write_error(path):
            replace_file(path, json.dumps(status))  # not synced to the disk: it is of interest only while the run lives
