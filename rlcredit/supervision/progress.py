"""Progress display: a bar on a terminal, lines anywhere else, and held-out results on both."""

import sys
import time
from collections.abc import Iterator
from typing import Any, cast

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rlcredit.base.lightning_private import read_datamodule
from rlcredit.base.messages import format_duration
from rlcredit.base.text_escaping import unwrap_stream
from rlcredit.outputs.held_out import render_held_out_value
from rlcredit.record.artifacts import find_run_folder
from rlcredit.tasks.held_out_sets import HeldOutSet
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule

_STEP_METRICS = {
    "train/solve_rate": ("solved", ".2f"),
    "train/entropy": ("entropy", ".3f"),
    "train/completion_length": ("length", ".0f"),
    "train/turns": ("turns", ".1f"),
    "train/tokens_per_second": ("tok/s", ",.0f"),
}
"""Metrics beside a step, with their labels and formats."""

_WIDE_COLUMNS = 100
"""Columns of a terminal from which on there is room for clocks beside the numbers."""


class HeldOutLines(Callback):
    """One line after every evaluation, and one at the end of the run: the first result, the last, and what it took."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.first_step: int | None = None

    def print_line(self, line: str) -> None:
        """Print a line."""
        print(line, flush=True)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Note the step where this process starts."""
        self.first_step = trainer.global_step

    @rank_zero_only
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Print the held-out result."""
        if not trainer.sanity_checking:
            for question_set in cast("Task", read_datamodule(trainer)).held_out_sets:
                rates = _list_shown_metrics(trainer, pl_module, question_set)
                metrics = trainer.callback_metrics
                text = "   ".join(f"{name} {render_held_out_value(key, metrics)}" for name, key in rates)
                self.print_line(f"{question_set.name or 'held out'} after {trainer.global_step:>4} steps: {text}")

    @rank_zero_only
    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Print what has been learnt; nothing where no step was taken."""
        if self.first_step is None or trainer.global_step == self.first_step:
            return
        step_count = trainer.global_step - self.first_step
        cost = f"{trainer.global_step} steps, {format_duration(time.perf_counter() - self.started)}"
        cost += f" for the last {step_count}" if self.first_step else ""
        for line in describe_held_out_gains(trainer, pl_module, cost):
            self.print_line(line)


def describe_held_out_gains(trainer: Trainer, module: LightningModule, cost: str) -> Iterator[str]:
    """Yield a line per held-out set: the first result, with its step if one was taken, and the last.

    Args:
        trainer: Trainer of the run, whose folder holds the evaluations.
        module: Training module, which knows the k of pass@k.
        cost: Steps and time that lie between.

    """
    folder = find_run_folder(trainer)
    steps = folder.evaluated_steps()
    if len(steps) < 2:
        return
    results = [folder.read_evaluation(step) for step in (steps[0], steps[-1])]
    for question_set in cast("Task", read_datamodule(trainer)).held_out_sets:
        changes = []
        for name, key in _list_shown_metrics(trainer, module, question_set):
            if key in results[0]["metrics"]:
                values = [render_held_out_value(key, result["metrics"]) for result in results]
                changes.append(f"{name} {' -> '.join(values)}")
        content = results[1]["sets"][question_set.name] if question_set.name else results[1]
        if changes:
            name = (question_set.name or "held out") + (f" from step {steps[0]}" if steps[0] else "")
            yield f"{name}: {', '.join(changes)} ({len(content['numbers'])} questions, {cost})"


def _list_shown_metrics(trainer: Trainer, module: LightningModule, question_set: HeldOutSet) -> list[tuple[str, str]]:
    """Return pass@1, pass@k and the reward, if it is real, of a held-out set, each with the name it is logged under."""
    k = cast("PolicyModule", module).evaluator.find_pass_metrics(question_set)["pass_at_k"].k
    metrics = [(f"pass@{k}", question_set.name_metric("pass_at_k"))] if k > 1 else []
    metrics += [("reward", question_set.name_metric("reward"))] if question_set.task.has_real_rewards else []
    return [("pass@1", question_set.name_metric("pass_at_1")), *metrics]


class StepProgressBar(HeldOutLines):
    """A progress bar over the steps of the run, with the numbers of the last step; held-out results stand above it.

    Not one of Lightning's: theirs count epochs, of which a run has none, and are refused beside
    ``enable_progress_bar: false``.

    Args:
        console: Console on which it is drawn; the terminal if None.

    """

    def __init__(self, console: Console | None = None) -> None:
        super().__init__()
        self.console = console or Console(file=unwrap_stream(sys.stdout))
        self.progress: Progress | None = None

    def print_line(self, line: str) -> None:
        """Print a line above the bar."""
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    @rank_zero_only
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Show that questions are being answered."""
        self._show(trainer, "held out")

    @rank_zero_only
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Print the result above the bar."""
        super().on_validation_end(trainer, pl_module)
        self._show(trainer, "step")

    @rank_zero_only
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start at the step where the run starts."""
        super().on_train_start(trainer, pl_module)
        self._show(trainer, "step")

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Advance the bar."""
        self._show(trainer, "step")

    @rank_zero_only
    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Leave the finished bar on the screen, and print what has been learnt below it."""
        self._close()
        super().on_fit_end(trainer, pl_module)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Restore the terminal; the evaluation before training continues in the same bar."""
        if stage == "fit":
            self._close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Leave the bar on the screen where the run stopped, and restore the terminal."""
        self._close()

    def _show(self, trainer: Trainer, doing: str) -> None:
        if self.progress is None:
            wide = self.console.width >= _WIDE_COLUMNS
            columns = (TextColumn("{task.description:<8}"), BarColumn(20 if wide else 8), MofNCompleteColumn())
            clocks = (TimeElapsedColumn(), TimeRemainingColumn()) if wide else ()
            self.progress = Progress(*columns, *clocks, TextColumn("{task.fields[metrics]}"), console=self.console)
            self.progress.add_task(doing, total=trainer.max_steps if trainer.max_steps > 0 else None, metrics="")
            self.progress.start()
        metrics = "  ".join(_list_step_metrics(trainer))
        self.progress.update(
            self.progress.task_ids[0], description=doing, completed=trainer.global_step, metrics=metrics
        )

    def _close(self) -> None:
        if self.progress is not None:
            self.progress.stop()
            self.progress = None


class StepLines(HeldOutLines):
    """One plain line every few steps and after every evaluation.

    Args:
        every_n_steps: Steps from one line to the next.

    """

    def __init__(self, every_n_steps: int = 10) -> None:
        super().__init__()
        self.every_n_steps = every_n_steps

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Print the state of training."""
        if trainer.global_step % self.every_n_steps == 0:
            total = f"/{trainer.max_steps}" if trainer.max_steps > 0 else ""
            numbers = "   ".join(_list_step_metrics(trainer))
            seconds = time.perf_counter() - self.started
            self.print_line(f"step {trainer.global_step:>4}{total}   {numbers}   {seconds:.0f} s")


def _list_step_metrics(trainer: Trainer) -> Iterator[str]:
    """Yield the numbers of the last step with their labels, a rate before its unit."""
    for name, (label, form) in _STEP_METRICS.items():
        if name in trainer.callback_metrics:
            value = format(float(trainer.callback_metrics[name]), form)
            yield f"{value} {label}" if label == "tok/s" else f"{label} {value}"


def make_progress_display() -> Callback:
    """Return a bar on a terminal, lines anywhere else."""
    return StepProgressBar() if sys.stdout.isatty() else StepLines()
