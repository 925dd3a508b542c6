"""Which run is this? Tags, a few parameters, and the tie between a checkpoint and its MLflow run."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import MLFlowLogger
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.tracking.versions import versions


def tags(condition: str, seed: int) -> dict[str, str]:
    """Return what identifies a run beside its parameters."""
    return {"condition": condition, "seed": str(seed), **versions()}


class RunIdentity(Callback):
    """Tie checkpoints to their MLflow run, so that a continued run goes on in the same one.

    Args:
        name: of the run.

    Attributes:
        parameters: shown beside the run; the full configuration is an artifact.

    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.parameters: dict[str, Any] = {}

    @rank_zero_only
    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Reopen the run, which the validation before it or an interruption has closed; name its parameters once."""
        for logger in trainer.loggers:
            if isinstance(logger, MLFlowLogger):
                logger.experiment.update_run(logger.run_id, status="RUNNING")
                if not logger.experiment.get_run(logger.run_id).data.params:
                    logger.log_hyperparams(self.parameters)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Remember the run and what it was."""
        checkpoint["run_name"], checkpoint["parameters"] = self.name, self.parameters
        runs = [logger.run_id for logger in trainer.loggers if isinstance(logger, MLFlowLogger)]
        checkpoint["mlflow_run_id"] = runs[0] if runs else None
