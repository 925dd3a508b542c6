"""Files of a run, written to its folder and listed in its record, which delivers them."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Trainer

from rlcredit.base.files import write_atomically
from rlcredit.base.messages import warn_once
from rlcredit.credit.rollout import Rollout
from rlcredit.record.logger import RunRecord
from rlcredit.run_folder.layout import RunFolder

_waiting: dict[Path, tuple[str, Callable[[], None]]] = {}
"""Texts that could not be written yet, by path, each with a function to call once it is written."""


def find_run_folder(trainer: Trainer) -> RunFolder:
    """Return the run's folder."""
    return RunFolder(trainer.default_root_dir)


def label_run_folder(trainer: Trainer) -> str:
    """Return the name of a run: that of its folder, behind its condition in a campaign."""
    path = find_run_folder(trainer).path.resolve()
    return f"{path.parent.name}, {path.name}" if path.name.startswith("seed") else path.name


def make_run_folder(trainer: Trainer) -> Path:
    """Return the path of the run's folder; create it if needed."""
    path = find_run_folder(trainer).path
    path.mkdir(parents=True, exist_ok=True)
    return path


def is_picture_due(trainer: Trainer, rollout: Rollout, every_n_steps: int) -> bool:
    """Whether a picture of this rollout is wanted: once every so many steps, and at the end of the run."""
    return is_measurement_due(trainer, rollout, every_n_steps) or is_last_step(trainer)


def is_last_step(trainer: Trainer) -> bool:
    """Whether the run ends with this step: all are taken, or a callback has stopped it."""
    return trainer.global_step == trainer.max_steps or trainer.should_stop


def is_measurement_due(trainer: Trainer, rollout: Rollout, every_n_steps: int) -> bool:
    """Whether this is a rollout's first update, and a multiple of so many steps falls on one of its updates."""
    updates = int(trainer.lightning_module.updates_per_rollout)  # pyright: ignore[reportArgumentType]
    return rollout.update == 0 and -rollout.step % every_n_steps < updates


def log_occasional_metrics(trainer: Trainer, metrics: Mapping[str, float]) -> None:
    """Log numbers that are measured only at some steps; Lightning would repeat the last ones at every step."""
    for logger in trainer.loggers:
        logger.log_metrics(dict(metrics), step=trainer.global_step)


def publish_tags(trainer: Trainer, values: Mapping[str, str]) -> None:
    """Send tags of the run."""
    for record in _find_run_records(trainer):
        record.log_tags(values)


def publish_file(trainer: Trainer, path: Path, artifact_path: str | None = None) -> None:
    """Send a file of the run's folder, or a folder with its contents."""
    for record in _find_run_records(trainer):
        record.log_file(path, artifact_path)


def publish_text(trainer: Trainer, name: str, text: str) -> None:
    """Write a text into the run's folder and send it; ``name`` is its path in both."""
    path = make_run_folder(trainer) / name
    _write_or_defer(path, text, lambda: publish_file(trainer, path, _find_artifact_folder(name)))


def publish_table(trainer: Trainer, name: str, records: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with the same columns as JSON into the run's folder, and send them as a table.

    Args:
        trainer: Trainer of the run.
        name: Path of the file inside the folder and among the artifacts.
        records: Rows of the table, at least one.

    """

    def deliver() -> None:
        for record in _find_run_records(trainer):
            record.log_table(name)

    _write_or_defer(make_run_folder(trainer) / name, json.dumps(records, ensure_ascii=False, indent=1), deliver)


@contextlib.contextmanager
def warn_on_write_error(path: Path) -> Iterator[None]:
    """Write an optional file: a disk error becomes a warning."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        warn_once(f"{path} cannot be written ({error.strerror or error}).")


def _write_or_defer(path: Path, text: str, deliver: Callable[[], None]) -> None:
    """Write this text and those that failed before; failures are tried again with the next text."""
    _waiting[path] = (text, deliver)
    write_waiting_texts()


def write_waiting_texts() -> list[Path]:
    """Write the texts that could not be written before; return the paths that still cannot."""
    for path, (text, deliver) in list(_waiting.items()):
        try:
            write_atomically(path, text)
        except OSError as error:
            warn_once(
                f"{path} cannot be written now ({error.strerror or error}). Training goes on; it is tried again later."
            )
            continue
        del _waiting[path]
        deliver()
    return list(_waiting)


def _find_run_records(trainer: Trainer) -> list[RunRecord]:
    return [logger for logger in trainer.loggers if isinstance(logger, RunRecord)]


def _find_artifact_folder(name: str) -> str | None:
    return name.rpartition("/")[0] or None
