"""Results that are published in MLflow at once, as a run of their own: those of a card, an evaluation, a validation."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcredit.record.destination import MLflowDestination, make_destination
from rlcredit.record.logger import RunRecord
from rlcredit.run_folder.layout import RunFolder


def make_results_destination(uri: str, experiment: str, name: str, tags: Mapping[str, str]) -> MLflowDestination | None:
    """Return the destination of results, from the words of a command line; None if they are not recorded.

    Args:
        uri: Address of the tracker; ``none`` for no run, ``env`` for the address in ``MLFLOW_TRACKING_URI``.
        experiment: Name of the experiment.
        name: Name of the run.
        tags: Tags of the run.

    """
    if uri == "none":
        return None
    settings = {"tracking_uri": None if uri == "env" else uri, "experiment_name": experiment}
    return make_destination(settings, name, tags)


def publish_results(
    folder: RunFolder,
    destination: MLflowDestination,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, float],
    *,
    step: int = 0,
    files: Sequence[Path] = (),
    table: str | None = None,
) -> None:
    """Record results and have them delivered; if MLflow is unreachable, a message says how to deliver them later.

    Args:
        folder: Folder of the record; an earlier record in it is replaced.
        destination: Destination of the record.
        parameters: Parameters of the run.
        metrics: Metrics, by name.
        step: Step to which the metrics belong.
        files: Files of the folder.
        table: Name of a table file in the folder.

    """
    record = RunRecord(folder, to=destination)
    try:
        record.log_hyperparams(parameters)
        record.log_metrics(metrics, step=step)
        for path in files:
            record.log_file(path)
        if table:
            record.log_table(table)
    finally:
        record.close("FINISHED")
