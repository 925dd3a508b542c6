"""The logger of a run: it writes to the run's folder at once, and to MLflow as soon as MLflow accepts it."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.messages import print_message
from rlcredit.record.delivery import DeliveryThread, RecordDelivery
from rlcredit.record.destination import MLflowDestination
from rlcredit.record.journal import Journal
from rlcredit.run_folder.layout import RunFolder

STATUS_PATIENCE = {"KILLED": 8.0, "FAILED": 20.0, "FINISHED": 120.0}
"""Seconds that a run waits at its end for its delivery to MLflow; at most 8 if MLflow has failed."""


class RunRecord(Logger):
    """The record of a run.

    Args:
        folder: Folder of the run.
        length: Bytes of an earlier record to go on from, as a checkpoint has noted them; a new record begins if None.
        to: Destination of the record; it is not delivered if None.

    Attributes:
        fresh: Whether the record is new.

    """

    def __init__(self, folder: RunFolder, length: int | None = None, to: MLflowDestination | None = None) -> None:
        super().__init__()
        self.folder, self.to, self.fresh = folder, to, length is None
        self.journal = None if rank_zero_only.rank else Journal(folder.record, length or 0)  # pyright: ignore[reportFunctionMemberAccess]
        self.delivery_thread: DeliveryThread | None = None
        if to is not None and self.journal is not None:
            self._save_destination(to)
            self.delivery_thread = DeliveryThread(RecordDelivery(folder, to))
            self.delivery_thread.start()

    @property
    def name(self) -> str:
        """Return the name of the folder."""
        return self.folder.path.name

    @property
    def version(self) -> str:
        """Return no version: a folder holds one record."""
        return ""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Record metrics of a step."""
        self._append_entry(step=step or 0, time=int(time.time() * 1000), metrics=dict(metrics))

    @rank_zero_only
    def log_hyperparams(self, params: Mapping[str, Any], *_: Any, **__: Any) -> None:
        """Record the parameters that distinguish runs in a table."""
        self._append_entry(parameters={name: str(value) for name, value in dict(params).items()})

    @rank_zero_only
    def log_tags(self, values: Mapping[str, str]) -> None:
        """Record tags of the run; a later tag replaces an earlier one with its name."""
        self._append_entry(tags=dict(values))

    @rank_zero_only
    def log_file(self, path: Path, to: str | None = None) -> None:
        """Record a file or folder in the run's folder; ``to`` is its folder among the artifacts."""
        self._append_entry(file=str(path.relative_to(self.folder.path)), to=to)

    @rank_zero_only
    def log_table(self, name: str) -> None:
        """Record a table file in the run's folder."""
        self._append_entry(table=name)

    def sync(self) -> int:
        """Wait until the disk has the whole record; return its length in bytes.

        Raises:
            OSError: the disk does not take it.

        """
        return self.journal.sync() if self.journal else 0

    def close(self, status: str, patience: float | None = None) -> bool:
        """End the record, wait a little for its delivery, and return whether it has arrived; a second call waits anew.

        Args:
            status: ``FINISHED``, ``FAILED`` or ``KILLED``.
            patience: Seconds to wait; as long as suits the status if None.

        """
        if self.delivery_thread is None or self.to is None:
            return False
        self.to.status = status
        self._save_destination(self.to)
        has_arrived = self.delivery_thread.close(status, STATUS_PATIENCE[status] if patience is None else patience)
        self._save_destination(self.to)
        if not has_arrived:
            trouble = "refused, as said above" if self.delivery_thread.refused else self.delivery_thread.trouble
            print_message(
                f"MLflow at {self.to.shown_address} has not received all of this run yet"
                f"{f' ({trouble})' if trouble else ''}; nothing is lost. Once it takes it, "
                f"`{self.to.delivery_command(self.folder.path)}` sends the rest."
            )
        return has_arrived

    def _save_destination(self, destination: MLflowDestination) -> None:
        with contextlib.suppress(OSError):  # a full disk must not hide how the run has ended
            destination.save(self.folder.tracking)

    def _append_entry(self, **entry: Any) -> None:
        if self.journal is not None:
            self.journal.append(entry)
        if self.delivery_thread is not None:
            self.delivery_thread.news.set()
