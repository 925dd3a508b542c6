"""Curves of training batches, which only MLflow keeps."""

from collections.abc import Mapping
from pathlib import Path

from rlcredit.report.evidence import Evidence

SHOWN = {
    "train/zero_variance": "groups without variance",
    "train/entropy": "entropy, nats",
    "train/completion_length": "tokens per completion",
}

Curve = Mapping[int, float]


def training_curves(evidence: Evidence) -> dict[tuple[str, int], dict[str, Curve]]:
    """Return the curves of :data:`SHOWN` by condition and seed; nothing where no MLflow has them.

    Steps begin at one: the value at step s belongs to the batch of the s-th update.
    """
    content = evidence.ledger.content
    uri, parent = tracking_uri(evidence), content.get("mlflow_run")
    if uri is None or parent is None:
        return {}
    from mlflow import MlflowClient  # noqa: PLC0415

    client = MlflowClient(uri)
    found: dict[tuple[str, int], dict[str, Curve]] = {}
    cells = {f"{condition}/seed{seed}": (condition, seed) for condition, seed in evidence.runs}
    experiment = client.get_run(parent).info.experiment_id
    mine = f"tags.`mlflow.parentRunId` = '{parent}' and attributes.status = 'FINISHED'"
    for run in client.search_runs([experiment], mine, max_results=50_000):
        if key := cells.get(run.data.tags["cell"]):
            histories = {name: client.get_metric_history(run.info.run_id, name) for name in SHOWN}
            found[key] = {name: {each.step + 1: each.value for each in row} for name, row in histories.items() if row}
    return found


def tracking_uri(evidence: Evidence) -> str | None:
    """Return where MLflow keeps the runs of a campaign; None if nowhere, or in a file that is not there."""
    declaration = evidence.declaration
    logger = evidence.ledger.content["configs"][declaration.baseline]["trainer"]["logger"]
    for each in logger if isinstance(logger, list) else [logger]:
        if isinstance(each, dict) and each["class_path"].endswith(".MLFlowLogger"):
            uri = each["init_args"]["tracking_uri"]
            file = Path(uri.removeprefix("sqlite:///"))
            return uri if file.is_file() or not uri.startswith("sqlite:///") else None
    return None
