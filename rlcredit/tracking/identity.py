"""The identity of a run: tags, a few parameters, and the link between a checkpoint and the record before it."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.exits import StorageUnavailable
from rlcredit.record import RunRecord
from rlcredit.record.artifacts import write_waiting_texts
from rlcredit.tracking.versions import read_code_versions


def make_run_tags(condition: str, seed: int) -> dict[str, str]:
    """Return what identifies a run beside its parameters."""
    return {"condition": condition, "seed": str(seed), **read_code_versions()}


class RunIdentity(Callback):
    """Tie checkpoints to the run and to the length of its record, so that a continued run goes on in both.

    Args:
        name: of the run.

    Attributes:
        record: of the run, once it has been opened.
        parameters: shown beside the run; the full configuration is an artifact.
        flat: further ones, by which runs can be sorted; see :func:`rlcredit.tracking.parameters.collect_flat_parameters`.

    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.record: RunRecord | None = None
        self.parameters: dict[str, Any] = {}
        self.flat: dict[str, Any] = {}

    @rank_zero_only
    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Name the parameters."""
        if self.record is not None and self.record.fresh:
            self.record.log_hyperparams({**self.flat, **self.parameters})

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Put name, parameters and length of the record into the checkpoint.

        Raises:
            NoStorage: the disk does not take the record, or a file that is still to be written.

        """
        checkpoint["run_name"], checkpoint["parameters"] = self.name, self.parameters
        if waiting := write_waiting_texts():
            raise StorageUnavailable(
                f"{waiting[0]} cannot be written. Training stops here: no checkpoint would hold without it."
            )
        try:
            checkpoint["record"] = self.record.sync() if self.record is not None else None
        except OSError as error:
            raise StorageUnavailable(f"{error} Training stops here: no checkpoint would hold without it.") from error
