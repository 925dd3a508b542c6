"""The heat-map of a run's last step: what every token of some completions was given."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.lightning_private import read_callbacks
from rlcredit.credit.catalogue import load_operator
from rlcredit.credit.heatmap import credit_heatmap
from rlcredit.credit.rollout import Rollout
from rlcredit.record.artifacts import find_run_folder, is_last_step, label_run_folder, publish_text

HEATMAP_COMPLETIONS = 8
"""Completions on the page; with the shipped policies it takes some 60 kB."""


class FinalHeatmap(Callback):
    """Write a page that colours completions of the last step by their credit, unless the stack writes such pages.

    ``CreditHeatmap`` in a stack writes them during the run too, and that of the last step.
    """

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Rollout, batch_idx: int
    ) -> None:
        """Draw the page of the last step."""
        if not is_last_step(trainer):
            return
        heatmap = load_operator("CreditHeatmap")
        if any(isinstance(callback, heatmap) for callback in read_callbacks(trainer)):
            return
        folder = find_run_folder(trainer)
        name = folder.heatmap_file(batch.step).relative_to(folder.path).as_posix()
        publish_text(
            trainer, name, credit_heatmap(batch, completions=HEATMAP_COMPLETIONS, run=label_run_folder(trainer))
        )
