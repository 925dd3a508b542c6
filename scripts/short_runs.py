"""A run that leaves nothing behind."""

import tempfile
from collections.abc import Sequence
from typing import Any

from lightning.pytorch import Callback, Trainer

from rlcredit.tasks import Task
from rlcredit.training.module import PolicyModule


def train_unlogged(module: PolicyModule, task: Task, steps: int, callbacks: Sequence[Callback], **more: Any) -> None:
    """Train for some steps, on the CPU if ``more`` says nothing else; ``more`` goes to the trainer.

    Nothing is logged, evaluated or kept.
    """
    with tempfile.TemporaryDirectory() as folder:
        make_unlogged_trainer(steps, callbacks, default_root_dir=folder, **more).fit(module, task)


def make_unlogged_trainer(steps: int, callbacks: Sequence[Callback], **more: Any) -> Trainer:
    """Return a trainer that logs, evaluates and keeps nothing, on the CPU if ``more`` says nothing else."""
    return Trainer(
        max_steps=steps,
        accelerator=more.pop("accelerator", "cpu"),
        logger=False,
        limit_val_batches=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=list(callbacks),
        **more,
    )
