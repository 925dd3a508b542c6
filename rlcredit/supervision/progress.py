"""Progress display: a bar on a terminal, one line every few steps anywhere else."""

import sys
import time
from typing import Any, cast

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rlcredit.base.lightning_private import read_datamodule
from rlcredit.base.text_escaping import unwrap_stream
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule

SHOWN = {"train/solve_rate": "solved", "train/tokens_per_second": "tok/s", "val/pass_at_1": "held out"}


class StepProgressBar(Callback):
    """A progress bar over the steps of the run, with solve rate, tokens per second and the last held-out result.

    Not one of Lightning's: theirs count epochs, of which a run has none, and are refused beside
    ``enable_progress_bar: false``.

    Args:
        console: Console on which it is drawn; the terminal if None.

    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(file=unwrap_stream(sys.stdout))
        self.progress: Progress | None = None

    @rank_zero_only
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Show that questions are being answered."""
        self._show(trainer, "held out")

    @rank_zero_only
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Show the result beside the step."""
        self._show(trainer, "step")

    @rank_zero_only
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start at the step where the run starts."""
        self._show(trainer, "step")

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Advance the bar."""
        self._show(trainer, "step")

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Leave the finished bar on the screen; the evaluation before training continues in it."""
        if stage == "fit":
            self._close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Leave the bar on the screen where the run stopped, and restore the terminal."""
        self._close()

    def _show(self, trainer: Trainer, doing: str) -> None:
        if self.progress is None:
            columns = (TextColumn("{task.description:<8}"), BarColumn(), MofNCompleteColumn())
            clocks = (TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[metrics]}"))
            self.progress = Progress(*columns, *clocks, console=self.console)
            self.progress.add_task(doing, total=trainer.max_steps if trainer.max_steps > 0 else None, metrics="")
            self.progress.start()
        logged = trainer.callback_metrics
        task = cast("Task", read_datamodule(trainer))
        shown = {**SHOWN, **{asked.name_metric("pass_at_1"): asked.name for asked in task.held_out_sets if asked.name}}
        metrics = "   ".join(
            f"{label} {_format_metric(float(logged[name]))}" for name, label in shown.items() if name in logged
        )
        self.progress.update(
            self.progress.task_ids[0], description=doing, completed=trainer.global_step, metrics=metrics
        )

    def _close(self) -> None:
        if self.progress is not None:
            self.progress.stop()
            self.progress = None


class StepLines(Callback):
    """One plain line every few steps and after every validation.

    Args:
        every_n_steps: Steps from one line to the next.

    """

    def __init__(self, every_n_steps: int = 10) -> None:
        self.every_n_steps = every_n_steps
        self.started = time.perf_counter()

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Print the state of training."""
        if trainer.global_step % self.every_n_steps == 0:
            metrics = trainer.callback_metrics
            of = f"/{trainer.max_steps}" if trainer.max_steps > 0 else ""
            print(
                f"step {trainer.global_step:>4}{of}   solved {metrics['train/solve_rate']:.2f}   "
                f"entropy {metrics['train/entropy']:.3f}   length {metrics['train/completion_length']:.0f}   "
                f"{metrics.get('train/tokens_per_second', 0):,.0f} tok/s   {time.perf_counter() - self.started:.0f} s",
                flush=True,
            )

    @rank_zero_only
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Print the held-out result."""
        if not trainer.sanity_checking:
            metrics, after = trainer.callback_metrics, f"after {trainer.global_step:>4} steps"
            for asked in cast("Task", read_datamodule(trainer)).held_out_sets:
                k = cast("PolicyModule", pl_module).find_pass_metrics(asked)["pass_at_k"].k
                of_k = f"   pass@{k} {metrics[asked.name_metric('pass_at_k')]:.3f}" if k > 1 else ""
                first = f"pass@1 {metrics[asked.name_metric('pass_at_1')]:.3f}"
                print(f"{asked.name or 'held out'} {after}: {first}{of_k}", flush=True)


def make_progress_display() -> Callback:
    """Return a bar on a terminal, lines anywhere else."""
    return StepProgressBar() if sys.stdout.isatty() else StepLines()


def _format_metric(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3f}"
