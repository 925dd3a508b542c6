"""The resolved configuration, as the run executed it."""

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.cli import SaveConfigCallback

from rlcredit.artifacts import folder, publish


class SaveConfig(SaveConfigCallback):
    """Write ``config.yaml`` into the run's folder and its MLflow run.

    The stock callback writes to ``trainer.log_dir``; a logger that keeps its runs in a database has none.
    """

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Save when training starts, not for the validation before it."""
        if stage == "fit":
            super().setup(trainer, pl_module, stage)

    def save_config(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Dump everything, defaults and nulls included."""
        path = folder(trainer) / "config.yaml"
        path.write_text(self.parser.dump(self.config, skip_none=False), encoding="utf-8")
        publish(trainer, path)
