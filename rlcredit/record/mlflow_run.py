"""One run in MLflow: read what it holds, and add to it."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcredit.record.destination import MLflowDestination
from rlcredit.record.mlflow_client import connect_to_mlflow, make_mlflow_database
from rlcredit.record.mlflow_experiment import choose_free_run_name, find_or_make_experiment

METRICS_PER_REQUEST = 1000
"""Most metrics that MLflow takes in one request."""

PARAMETERS_PER_REQUEST = 100
"""Most parameters that it takes in one."""

MAX_PARAMETER_LENGTH = 250
"""Characters of a parameter; the whole configuration is an artifact."""

KEY_TAG = "rlcredit.key"
"""The tag by which a run is found if its id was lost."""

Point = tuple[str, int]
"""A metric and a step."""


class MLflowRun:
    """The MLflow run of a destination; every call may fail, and may take as long as MLflow's time limits allow.

    Args:
        destination: Destination that names the run; its ``run_id`` is filled in.

    """

    def __init__(self, destination: MLflowDestination) -> None:
        make_mlflow_database(destination.address)
        self.destination = destination
        self.client = connect_to_mlflow(destination.address)

    def list_points(self) -> set[Point] | None:
        """Return every metric and step that the run holds; None if there is no such run, or it was deleted."""
        run_id = self.destination.run_id
        run = None if run_id is None else self._find_active_run(run_id)
        if run is None:
            return None
        self.destination.experiment_id, self.destination.shown_name = run.info.experiment_id, run.info.run_name
        return {(key, m.step) for key in run.data.metrics for m in self.client.get_metric_history(run_id, key)}

    def _find_active_run(self, run_id: str) -> Any:
        """Return a run; None if there is none of this id, or it was deleted."""
        from mlflow.exceptions import MlflowException  # noqa: PLC0415

        try:
            run = self.client.get_run(run_id)
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return None
            raise
        return None if run.info.lifecycle_stage == "deleted" else run

    def create_run(self) -> str:
        """Create the run, and its experiment if needed, unless one has this key; return its id."""
        from mlflow.tracking.context.registry import resolve_tags  # noqa: PLC0415

        destination = self.destination
        home = destination.experiment_id = find_or_make_experiment(
            self.client, destination.experiment_name, destination.artifact_location
        )
        tags = resolve_tags({**destination.tags, KEY_TAG: str(destination.key)})
        for run in self.client.search_runs([home], f"tags.`{KEY_TAG}` = '{destination.key}'", max_results=1):
            for name, value in tags.items():
                self.client.set_tag(run.info.run_id, name, value)
            destination.shown_name = run.info.run_name
            return run.info.run_id
        destination.shown_name = choose_free_run_name(self.client, home, destination.run_name, destination.removes)
        return self.client.create_run(home, tags=tags, run_name=destination.shown_name).info.run_id

    def mark_running(self) -> None:
        """Mark the run as running."""
        self.client.update_run(self._id, status="RUNNING")

    def end_run(self, status: str) -> None:
        """Set the final status of the run."""
        self.client.set_terminated(self._id, status)

    def mark_killed(self, run_id: str) -> None:
        """Mark an earlier run as killed if MLflow shows it as running; no other process would."""
        run = self._find_active_run(run_id)
        if run is not None and run.info.status == "RUNNING":
            self.client.set_terminated(run_id, "KILLED")

    def delete_run(self, run_id: str) -> None:
        """Delete a run that this one has replaced; MLflow can restore what it has deleted."""
        if self._find_active_run(run_id) is not None:
            self.client.delete_run(run_id)

    def log_parameters(self, values: Mapping[str, Any]) -> None:
        """Set the parameters of the run, once; MLflow lets none change."""
        from mlflow.entities import Param  # noqa: PLC0415

        if not self.client.get_run(self._id).data.params:
            parameters = [
                Param(clean_mlflow_name(key)[:MAX_PARAMETER_LENGTH], str(value)[:MAX_PARAMETER_LENGTH])
                for key, value in values.items()
            ]
            for start in range(0, len(parameters), PARAMETERS_PER_REQUEST):
                self.client.log_batch(self._id, params=parameters[start : start + PARAMETERS_PER_REQUEST])

    def set_tags(self, values: Mapping[str, str]) -> None:
        """Set tags of the run; one of the same name is replaced."""
        for name, value in values.items():
            self.client.set_tag(self._id, name, value)

    def add_metrics(self, points: Sequence[tuple[str, float, int, int]]) -> None:
        """Add metrics: name, value, milliseconds since 1970, step."""
        from mlflow.entities import Metric  # noqa: PLC0415

        entities = [Metric(*point) for point in points]
        for start in range(0, len(entities), METRICS_PER_REQUEST):
            self.client.log_batch(self._id, metrics=entities[start : start + METRICS_PER_REQUEST])

    def upload_file(self, path: Path, folder: str | None) -> None:
        """Upload a file, or a folder with all that lies in it; one of the same name is replaced."""
        upload = self.client.log_artifacts if path.is_dir() else self.client.log_artifact
        upload(self._id, str(path), folder)

    def upload_table(self, path: Path, name: str) -> None:
        """Upload rows, written as JSON objects, as a table that MLflow's pages show; it replaces one of its name."""
        records = json.loads(path.read_text(encoding="utf-8"))
        columns = list(records[0])
        content = {"columns": columns, "data": [[record[column] for column in columns] for record in records]}
        self.client.log_text(self._id, json.dumps(content, ensure_ascii=False), name)
        tables = json.loads(self.client.get_run(self._id).data.tags.get(TABLES_TAG, "[]"))
        if (entry := {"path": name, "type": "table"}) not in tables:
            self.client.set_tag(self._id, TABLES_TAG, json.dumps([*tables, entry]))

    @property
    def _id(self) -> str:
        assert self.destination.run_id is not None
        return self.destination.run_id


TABLES_TAG = "mlflow.loggedArtifacts"
"""The tag by which MLflow's pages know which artifacts are tables."""


def clean_mlflow_name(name: str) -> str:
    """Return a metric's name without what MLflow does not accept in one.

    Example:
        >>> clean_mlflow_name("val/pass@1")
        'val/pass1'

    """
    return re.sub(r"[^a-zA-Z0-9_/. :-]+", "", name)
