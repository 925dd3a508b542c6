"""Files of a run, kept in its folder and, where there is an MLflow run, uploaded to it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Trainer
from lightning.pytorch.loggers import MLFlowLogger

from rlcredit.rollout import Rollout


def folder(trainer: Trainer) -> Path:
    """Return the run's folder, made if need be."""
    path = Path(trainer.default_root_dir)
    path.mkdir(parents=True, exist_ok=True)
    return path


def due(trainer: Trainer, rollout: Rollout, every_n_steps: int) -> bool:
    """Whether a picture of this rollout is wanted: once every so many steps, and at the end of the run."""
    return measured(trainer, rollout, every_n_steps) or trainer.global_step == trainer.max_steps


def measured(trainer: Trainer, rollout: Rollout, every_n_steps: int) -> bool:
    """Whether this is a rollout's first update, and a multiple of so many steps falls on one of its updates."""
    updates = int(trainer.lightning_module.updates_per_rollout)  # pyright: ignore[reportArgumentType]
    return rollout.update == 0 and -rollout.step % every_n_steps < updates


def log_now(trainer: Trainer, metrics: Mapping[str, float]) -> None:
    """Log numbers that are measured now and then; Lightning would go on showing the last ones at every step."""
    for logger in trainer.loggers:
        logger.log_metrics(dict(metrics), step=trainer.global_step)


def publish(trainer: Trainer, path: Path, artifact_path: str | None = None) -> None:
    """Upload a file, or a folder with all that lies in it, to the MLflow run if there is one."""
    for logger in trainer.loggers:
        if isinstance(logger, MLFlowLogger):
            upload = logger.experiment.log_artifacts if path.is_dir() else logger.experiment.log_artifact
            upload(logger.run_id, str(path), artifact_path)


def publish_text(trainer: Trainer, name: str, text: str) -> None:
    """Write a text into the run's folder and upload it; ``name`` is its path in both."""
    publish(trainer, _written(trainer, name, text), str(Path(name).parent))


def _written(trainer: Trainer, name: str, text: str) -> Path:
    path = folder(trainer) / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def publish_table(trainer: Trainer, name: str, records: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with the same columns as JSON into the run's folder and as a table to its MLflow page.

    Args:
        trainer: of the run.
        name: path of the file inside the folder and among the artifacts.
        records: the rows, at least one.

    """
    _written(trainer, name, json.dumps(records, ensure_ascii=False, indent=1))
    columns = {column: [record[column] for record in records] for column in records[0]}
    for logger in trainer.loggers:
        if isinstance(logger, MLFlowLogger):
            logger.experiment.log_table(logger.run_id, columns, name)
