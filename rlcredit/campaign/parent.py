"""The campaign among MLflow's runs: a parent, its children below it."""

import json
from pathlib import Path

from rlcredit.campaign.cell import Cell
from rlcredit.campaign.declaration import Declaration
from rlcredit.campaign.ledger import Ledger

CONTEXT = "MLFLOW_RUN_CONTEXT"
"""MLflow takes the tags of a new run from this variable too: nesting is no part of a run's configuration."""


class Parent:
    """The MLflow run of the campaign; nothing happens where no MLflow logger is configured.

    Args:
        mlflow: ``experiment_name`` and ``tracking_uri`` of the runs, or None.
        declaration: of the campaign.
        ledger: remembers the run.

    """

    def __init__(self, mlflow: dict[str, str] | None, declaration: Declaration, ledger: Ledger) -> None:
        self.client = self.run_id = None
        if mlflow is None:
            return
        from mlflow import MlflowClient  # noqa: PLC0415

        self.client = MlflowClient(mlflow["tracking_uri"])
        # Made here, by one process: runs that begin together would all want to make them.
        known = self.client.get_experiment_by_name(mlflow["experiment_name"])
        self.experiment = known.experiment_id if known else self.client.create_experiment(mlflow["experiment_name"])
        self.run_id = ledger.content.get("mlflow_run")
        if self.run_id is None:
            tags = {"campaign": declaration.name, "declaration_sha256": declaration.sha256}
            self.run_id = self.client.create_run(self.experiment, tags=tags, run_name=declaration.name).info.run_id
            ledger.write(mlflow_run=self.run_id)
        self.tags = {"mlflow.parentRunId": self.run_id, "campaign": declaration.name}
        self.client.update_run(self.run_id, status="RUNNING")

    def context(self, cell: Cell) -> dict[str, str]:
        """Return the environment that makes a run a child of this one."""
        return {CONTEXT: json.dumps({**self.tags, "cell": cell.name})} if self.client else {}

    def abandon(self, cell: Cell) -> None:
        """Say of attempts that will not be continued that they were killed; nothing else ever will."""
        if self.client is None:
            return
        mine = f"tags.`mlflow.parentRunId` = '{self.run_id}' and tags.cell = '{cell.name}'"
        for run in self.client.search_runs([self.experiment], f"{mine} and attributes.status = 'RUNNING'"):
            self.client.set_terminated(run.info.run_id, "KILLED")

    def close(self, status: str, ledger: Path) -> None:
        """End the run and keep the ledger with it."""
        if self.client and self.run_id:
            self.client.log_artifact(self.run_id, str(ledger))
            self.client.set_terminated(self.run_id, status)
