"""A run that leaves nothing behind."""

import tempfile
from collections.abc import Sequence
from typing import Any

from lightning.pytorch import Callback, Trainer

from rlcredit.tasks import Task
from rlcredit.training.module import PolicyModule


def train_unlogged(module: PolicyModule, task: Task, steps: int, callbacks: Sequence[Callback], **more: Any) -> None:
    """Train on the CPU for some steps; nothing is logged, evaluated or kept. ``more`` goes to the trainer."""
    with tempfile.TemporaryDirectory() as folder:
        make_unlogged_trainer(steps, callbacks, default_root_dir=folder, **more).fit(module, task)


def make_unlogged_trainer(steps: int, callbacks: Sequence[Callback], **more: Any) -> Trainer:
    """Return a trainer on the CPU that logs, evaluates and keeps nothing. ``more`` goes to the trainer."""
    return Trainer(
        max_steps=steps,
        accelerator="cpu",
        logger=False,
        limit_val_batches=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=list(callbacks),
        **more,
    )
