"""The MLflow run of a campaign, parent of the MLflow runs of its training runs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlcredit.base.messages import warn_once
from rlcredit.campaign.campaign_record import CampaignRecord
from rlcredit.campaign.declaration import CampaignDeclaration
from rlcredit.campaign.run_spec import RunSpec
from rlcredit.record.destination import CONTEXT_VARIABLE
from rlcredit.record.mlflow_client import connect_to_mlflow, make_mlflow_database
from rlcredit.record.mlflow_experiment import choose_free_run_name, find_or_make_experiment


class MLflowParentRun:
    """The MLflow run of the campaign; nothing happens where no MLflow logger is configured.

    A campaign goes on without MLflow: its ledger is the record, and its runs deliver theirs as soon as they can.

    Args:
        mlflow: ``experiment_name`` and ``tracking_uri`` of the runs, or None.
        declaration: Declaration of the campaign.
        ledger: Record of the campaign, which remembers the run.

    """

    def __init__(self, mlflow: dict[str, str] | None, declaration: CampaignDeclaration, ledger: CampaignRecord) -> None:
        self.client: Any = None
        self.run_id = ledger.content.get("mlflow_run")
        self.tags = {"campaign": declaration.name}
        if mlflow is not None:
            with self._survive_tracker_errors():
                self._open_run(mlflow, declaration, ledger)

    def _open_run(self, mlflow: dict[str, str], declaration: CampaignDeclaration, ledger: CampaignRecord) -> None:
        make_mlflow_database(mlflow["tracking_uri"] or "")
        client = connect_to_mlflow(mlflow["tracking_uri"])
        # Made here by one process: runs that begin together would all try to make it.
        self.experiment = find_or_make_experiment(client, mlflow["experiment_name"])
        if self.run_id is None:
            tags = {**self.tags, "declaration_sha256": declaration.sha256}
            name = choose_free_run_name(client, self.experiment, declaration.name)
            self.run_id = client.create_run(self.experiment, tags=tags, run_name=name).info.run_id
            ledger.write_entries(mlflow_run=self.run_id)
        client.update_run(self.run_id, status="RUNNING")
        self.client = client

    def child_environment(self, spec: RunSpec) -> dict[str, str]:
        """Return the environment variables that make a run a child of this MLflow run."""
        parent_tags = {"mlflow.parentRunId": self.run_id} if self.run_id else {}
        return {CONTEXT_VARIABLE: json.dumps({**parent_tags, **self.tags, "cell": spec.name})}

    def kill_open_attempts(self, spec: RunSpec) -> None:
        """Mark attempts that will not be continued as killed, which no other process would do."""
        if self.client is None:
            return
        children = f"tags.`mlflow.parentRunId` = '{self.run_id}' and tags.spec = '{spec.name}'"
        with self._survive_tracker_errors():
            for run in self.client.search_runs([self.experiment], f"{children} and attributes.status = 'RUNNING'"):
                self.client.set_terminated(run.info.run_id, "KILLED")

    def end_run(self, status: str, ledger: Path) -> None:
        """End the MLflow run and store the ledger with it."""
        if self.client is None:
            return
        with self._survive_tracker_errors():
            self.client.log_artifact(self.run_id, str(ledger))
            self.client.set_terminated(self.run_id, status)

    @contextmanager
    def _survive_tracker_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  (whatever a tracker or its database may raise, the campaign goes on)
            warn_once(
                f"MLflow does not take what belongs to the campaign as a whole ({type(error).__name__}). It goes on; "
                "its ledger and the records of its runs hold everything."
            )
