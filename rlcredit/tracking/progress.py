"""Progress for people: a bar on a terminal, a line per few steps anywhere else."""

import sys
import time
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import RichProgressBar
from lightning.pytorch.utilities import rank_zero_only

SHOWN = {"train/solve_rate": "solved", "train/tokens_per_second": "tok/s", "val/pass_at_1": "held-out"}


class Bar(RichProgressBar):
    """A Rich bar with solve rate, tokens per second and the last held-out result."""

    def get_metrics(
        self, trainer: Trainer, pl_module: LightningModule
    ) -> dict[str, int | str | float | dict[str, float]]:
        """Show a few numbers, not all."""
        known = trainer.callback_metrics
        return {label: _short(float(known[name])) for name, label in SHOWN.items() if name in known}


class Lines(Callback):
    """One plain line every few steps and after every validation.

    Args:
        every_n_steps: how often.

    """

    def __init__(self, every_n_steps: int = 10) -> None:
        self.every_n_steps = every_n_steps
        self.started = time.perf_counter()

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Say where training stands."""
        if trainer.global_step % self.every_n_steps == 0:
            known = trainer.callback_metrics
            print(
                f"step {trainer.global_step:>4}/{trainer.max_steps}   solved {known['train/solve_rate']:.2f}   "
                f"entropy {known['train/entropy']:.3f}   length {known['train/completion_length']:.0f}   "
                f"{known.get('train/tokens_per_second', 0):,.0f} tok/s   {time.perf_counter() - self.started:.0f} s",
                flush=True,
            )

    @rank_zero_only
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Say how the held-out questions went."""
        if not trainer.sanity_checking:
            known = trainer.callback_metrics
            print(
                f"held out after {trainer.global_step:>4} steps: pass@1 {known['val/pass_at_1']:.3f}   "
                f"pass@{pl_module.pass_at_k.k} {known['val/pass_at_k']:.3f}",  # pyright: ignore
                flush=True,
            )


def progress() -> Callback:
    """Return what suits the place where output goes."""
    return Bar(leave=True) if sys.stdout.isatty() else Lines()


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3f}"
