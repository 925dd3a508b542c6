"""The resolved configuration of a run, as it was executed."""

import json
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.cli import SaveConfigCallback

from rlcredit.base.exit_status import StorageUnavailable
from rlcredit.base.files import write_atomically
from rlcredit.record.artifacts import find_run_folder, publish_file


class SaveConfig(SaveConfigCallback):
    """Write ``config.yaml`` into the run's folder and its MLflow run, and ``parameters.json`` beside it.

    The stock callback writes to ``trainer.log_dir``; a logger that keeps its runs in a database has none.

    Attributes:
        parameters: Parameters that the instantiated objects report, see
            :func:`rlcredit.cli.explain.collect_run_parameters`.

    """

    parameters: dict[str, Any]

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Save when training starts, not for the validation before it."""
        if stage == "fit":
            super().setup(trainer, pl_module, stage)

    def save_config(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Write the complete configuration, defaults and nulls included.

        Raises:
            StorageUnavailable: the disk does not take it.

        """
        folder = find_run_folder(trainer)
        try:
            write_atomically(folder.config, self.parser.dump(self.config, skip_none=False))
            publish_file(trainer, folder.config)
            write_atomically(folder.parameters, json.dumps(self.parameters, indent=1, ensure_ascii=False))
        except OSError as error:
            raise StorageUnavailable(
                f"{folder.config.name} cannot be written to {folder.path} ({error.strerror or error}). Make room."
            ) from error
