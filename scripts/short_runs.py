"""A run that leaves nothing behind."""

import tempfile
from collections.abc import Sequence
from typing import Any

from lightning.pytorch import Callback, Trainer

from rlcredit.tasks import Task
from rlcredit.training.module import PolicyModule


def train_unlogged(
    module: PolicyModule, task: Task, steps: int, callbacks: Sequence[Callback], **trainer_options: Any
) -> None:
    """Train for some steps, on the CPU if ``trainer_options`` names no other accelerator.

    Nothing is logged, evaluated or kept.
    """
    with tempfile.TemporaryDirectory() as folder:
        make_unlogged_trainer(steps, callbacks, default_root_dir=folder, **trainer_options).fit(module, task)


def make_unlogged_trainer(steps: int, callbacks: Sequence[Callback], **trainer_options: Any) -> Trainer:
    """Return a trainer that logs, evaluates and keeps nothing, on the CPU if no other accelerator is named."""
    return Trainer(
        max_steps=steps,
        accelerator=trainer_options.pop("accelerator", "cpu"),
        logger=False,
        limit_val_batches=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=list(callbacks),
        **trainer_options,
    )


class StepMetricsRecorder(Callback):
    """Keep what every step measured of itself, once all of it has been logged."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Have the step before remembered when the next begins."""
        pl_module.between_steps.append(lambda: trainer.global_step and self.copy_step_metrics(trainer))

    def on_train_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Remember the last one."""
        self.copy_step_metrics(trainer)

    def copy_step_metrics(self, trainer: Trainer) -> None:
        """Copy the metrics of one step."""
        self.steps.append({name: float(value) for name, value in trainer.callback_metrics.items()})
