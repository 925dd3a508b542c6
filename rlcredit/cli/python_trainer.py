"""A trainer for scripts and notebooks: Lightning's, with what every run needs and without what says nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.lightning_private import read_datamodule
from rlcredit.cli.explain import collect_run_parameters
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.outputs.completion_table import CompletionTable
from rlcredit.outputs.final_heatmap import FinalHeatmap
from rlcredit.outputs.held_out import HeldOutVerdicts
from rlcredit.outputs.run_identity import collect_flat_parameters
from rlcredit.record import RunRecord
from rlcredit.run_folder.layout import RunFolder
from rlcredit.supervision.progress import make_progress_display
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule


class RunParameters(Callback):
    """Record the parameters of a run whose objects a script has made."""

    @rank_zero_only
    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Record stack, policy, task, loss and optimizer."""
        task = read_datamodule(trainer)
        if trainer.logger and isinstance(pl_module, PolicyModule) and isinstance(task, Task):
            flat = collect_flat_parameters(trainer, pl_module, task)
            trainer.logger.log_hyperparams({**flat, **collect_run_parameters(trainer, pl_module, task)})


def make_trainer(
    callbacks: Sequence[Callback],
    folder: Path | str,
    max_steps: int,
    val_check_interval: int | None = None,
    **more: Any,
) -> Trainer:
    """Return a trainer that keeps its run in a folder, and prints few lines.

    The folder holds the record with its parameters, held-out verdicts, completions, and a page with the credit of the
    last step. ``trainer.validate(module, task, verbose=False)`` before ``fit`` adds the result before training.

    Args:
        callbacks: Operators of the stack, from top to bottom, and any other callbacks.
        folder: Folder of the run; a record in it is replaced.
        max_steps: Optimizer steps to take.
        val_check_interval: Steps from one held-out evaluation to the next; one after the last step if None.
        more: Further arguments of Lightning's ``Trainer``, which replace those set here.

    Raises:
        TypeError: an entry is a class or a text, no callback.

    Example:
        >>> import tempfile
        >>> from callbacks import GRPO
        >>> trainer = make_trainer([GRPO()], tempfile.mkdtemp(), max_steps=4)
        >>> trainer.max_steps, trainer.check_val_every_n_epoch, type(trainer.logger).__name__
        (4, None, 'RunRecord')

    """
    for place, callback in enumerate([callbacks] if isinstance(callbacks, str) else callbacks):
        if not isinstance(callback, Callback):
            name = callback.__name__ if isinstance(callback, type) else str(callback)
            raise TypeError(f"callbacks[{place}] is {callback!r}, no callback. Write an instance, such as {name}().")
    silence_libraries()
    home = RunFolder(folder)
    settings = {
        "callbacks": [
            *callbacks,
            RunParameters(),
            HeldOutVerdicts(),
            CompletionTable(),
            FinalHeatmap(),
            make_progress_display(),
        ],
        "logger": RunRecord(home),
        "default_root_dir": home.path,
        "max_steps": max_steps,
        "max_epochs": -1,
        "val_check_interval": val_check_interval or max_steps,
        "check_val_every_n_epoch": None,
        "log_every_n_steps": 1,
        "num_sanity_val_steps": 0,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "use_distributed_sampler": False,
        "deterministic": True,
    }
    return Trainer(**{**settings, **more})
