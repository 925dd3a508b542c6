"""What finished runs have logged into an MLflow database."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from mlflow import MlflowClient


class LoggedMetric(NamedTuple):
    """The values of a metric in a run.

    Args:
        condition: Condition of the run.
        seed: Seed of the run.
        metric: Name of the metric.
        values: Values by step.

    """

    condition: str
    seed: int
    metric: str
    values: dict[int, float]


def read_logged_metrics(database: Path, wanted: Callable[[str], bool]) -> Iterator[LoggedMetric]:
    """Yield what finished runs of a database have logged, of the metrics that are wanted."""
    client = MlflowClient(f"sqlite:///{database.resolve()}")
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    for run in client.search_runs(experiments, "attributes.status = 'FINISHED'", max_results=50_000):
        tags, names = run.data.tags, sorted(filter(wanted, run.data.metrics))
        for name in names if "condition" in tags else ():
            history = client.get_metric_history(run.info.run_id, name)
            yield LoggedMetric(
                tags["condition"], int(tags["seed"]), name, {point.step: point.value for point in history}
            )
