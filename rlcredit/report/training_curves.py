"""Curves over training batches, which only MLflow stores."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlcredit.campaign.record_schema import find_mlflow_settings
from rlcredit.campaign.run_spec import RunSpec, name_run
from rlcredit.record.destination import MLflowDestination, resolve_tracking_uri
from rlcredit.record.mlflow_client import connect_to_mlflow
from rlcredit.report.evidence import CampaignEvidence

TRAINING_METRICS = {
    "train/zero_variance": "groups without variance",
    "train/entropy": "entropy, nats",
    "train/completion_length": "tokens per completion",
}
SHARE_METRICS = {"train/zero_variance"}
"""Which of them are proportions."""

Curve = Mapping[int, float]
Store = tuple[Any, Any]
"""MLflow's client, and the campaign's run in it."""


def load_training_curves(evidence: CampaignEvidence, store: Store | None) -> dict[tuple[str, int], dict[str, Curve]]:
    """Return the curves of :data:`TRAINING_METRICS` by condition and seed; empty if no MLflow has them.

    Steps begin at one: the value at step s belongs to the batch of the s-th update.
    """
    curves: dict[tuple[str, int], dict[str, Curve]] = {}
    if store is None:
        return curves
    client, parent = store
    cells = {name_run(*key): key for key in evidence.runs}
    run_ids = {key: _read_mlflow_run_id(evidence, key) for key in evidence.runs}
    children = f"tags.`mlflow.parentRunId` = '{parent.info.run_id}' and attributes.status = 'FINISHED'"
    oldest_first = ["attributes.start_time ASC"]
    for run in client.search_runs([parent.info.experiment_id], children, max_results=50_000, order_by=oldest_first):
        key = cells.get(run.data.tags.get("cell"))
        # Of two runs of a cell one made the files: that of the folder, or the later one where no folder says.
        if key and run_ids[key] in (None, run.info.run_id):
            histories = {name: client.get_metric_history(run.info.run_id, name) for name in TRAINING_METRICS}
            curves[key] = {
                name: {point.step + 1: point.value for point in history}
                for name, history in histories.items()
                if history
            }
    return curves


def _read_mlflow_run_id(evidence: CampaignEvidence, key: tuple[str, int]) -> str | None:
    """Return the MLflow run that the files of a run belong to; None if they do not name one."""
    destination = MLflowDestination.load(RunSpec(*key, evidence.ledger.path.parent).run_folder.tracking)
    return destination.run_id if destination else None


def find_campaign_mlflow_run(evidence: CampaignEvidence) -> Store | None:
    """Return MLflow's client and the campaign's run in it; None if no MLflow knows the campaign.

    A relative address is one of the working directory.
    """
    declaration, content = evidence.declaration, evidence.ledger.content
    settings, parent = find_mlflow_settings(content["configs"][declaration.baseline]), content.get("mlflow_run")
    uri = resolve_tracking_uri(settings["tracking_uri"]) if settings else None
    if (
        not uri
        or parent is None
        or (uri.startswith("sqlite:///") and not Path(uri.removeprefix("sqlite:///")).is_file())
    ):
        return None
    from mlflow.exceptions import MlflowException  # noqa: PLC0415

    client = connect_to_mlflow(uri)
    try:
        return client, client.get_run(parent)
    except MlflowException:
        return None
