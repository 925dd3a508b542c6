"""Where a record is delivered, and how much of it has arrived."""

import contextlib
import dataclasses
import json
import os
import shlex
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from rlcredit.base.files import replace_file
from rlcredit.config.stored_records import parse_record
from rlcredit.record.mlflow_client import SQLITE_PREFIX
from rlcredit.record.mlflow_experiment import RUNS_PAGE

USUAL_TRACKER = f"{SQLITE_PREFIX}mlflow.db"
"""The tracker of the shipped configurations: a database in the working directory."""

URI_VARIABLE = "MLFLOW_TRACKING_URI"

LOCAL_PAGES = "http://127.0.0.1:5000"
"""Address at which ``mlflow ui`` shows a database, unless it is told another."""

_saving = threading.Lock()


@dataclasses.dataclass
class MLflowDestination:
    """A run in MLflow.

    Args:
        tracking_uri: Address of a database or a server; that of the environment variable ``MLFLOW_TRACKING_URI`` if
            None, so that what is secret in it is never written down.
        experiment_name: Name of the experiment, made if need be.
        run_name: Name of the run.
        tags: Tags of the run, beside those that MLflow takes from its environment.
        artifact_location: Place for the experiment's artifacts, if the experiment has to be made.
        key: Tag of the run, saved before the run is made: if the answer with its id is lost, the run is found by this
            tag.
        run_id: Id of the run, None until it has been made.
        arrived: Bytes of the record whose files have arrived.
        status: Status with which the run has ended; None while it goes on.
        closes: Runs of earlier attempts in the same folder, which may still say that they go on.
        removes: Runs that this one has replaced, which are still to be deleted.
        experiment_id: Id of the experiment, None until the run has been made.
        shown_name: Name that MLflow shows: that of the run, numbered where another has it.

    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    tracking_uri: str | None
    experiment_name: str
    run_name: str
    tags: dict[str, str]
    artifact_location: str | None = None
    key: str | None = None
    run_id: str | None = None
    arrived: int = 0
    status: str | None = None
    closes: list[str] = dataclasses.field(default_factory=list)
    removes: list[str] = dataclasses.field(default_factory=list)
    experiment_id: str | None = None
    shown_name: str | None = None

    @property
    def address(self) -> str:
        """Return the address to connect to.

        Raises:
            ValueError: there is none.

        """
        address = self.tracking_uri or os.environ.get(URI_VARIABLE)
        if not address:
            raise ValueError(
                f"{URI_VARIABLE} is not set, and the tracker is to be read from it (--mlflow env, tracking_uri: null). "
                "Set it, or name a tracker."
            )
        return address

    @property
    def shown_address(self) -> str:
        """Return the address for people; one that comes from the environment may hold a password."""
        return self.tracking_uri or "the address in MLFLOW_TRACKING_URI"

    @property
    def page(self) -> str | None:
        """Return the address of the experiment's runs on MLflow's pages; None while it is not known, or secret.

        A database is shown by ``mlflow ui`` at its usual address.
        """
        address = self.tracking_uri or ""
        server = LOCAL_PAGES if address.startswith(SQLITE_PREFIX) else address.rstrip("/")
        if self.experiment_id is None or not server.startswith("http"):
            return None
        return f"{server}/#/experiments/{self.experiment_id}/{RUNS_PAGE}"

    def redirect(self, tracking_uri: str | None, experiment_name: str) -> "MLflowDestination":
        """Return this destination for another tracker or experiment, or itself if they are the same."""
        if (tracking_uri, experiment_name) == (self.tracking_uri, self.experiment_name):
            return self
        return MLflowDestination(tracking_uri, experiment_name, self.run_name, self.tags, status=self.status)

    def delivery_command(self, folder: Path) -> str:
        """Return the command that delivers a folder here; an address that is not the usual one has to be named."""
        words = ["rlcredit", "deliver", str(folder)]
        if self.tracking_uri not in (None, resolve_tracking_uri(USUAL_TRACKER)):
            words += ["--mlflow", str(self.tracking_uri)]
        return shlex.join(words)

    def save(self, path: Path) -> None:
        """Write the destination to a file; both the run and its delivery thread do."""
        with _saving:
            replace_file(path, json.dumps(dataclasses.asdict(self), indent=1))

    @classmethod
    def load(cls, path: Path) -> "MLflowDestination | None":
        """Return the saved destination; None if there is no file, or none that can be read."""
        with contextlib.suppress(OSError, ValueError):
            return parse_record(path.read_text(encoding="utf-8"), cls)
        return None


USED_ARGUMENTS = frozenset(["experiment_name", "run_name", "tracking_uri", "tags", "artifact_location"])
"""Arguments of Lightning's MLFlowLogger that mean something here."""

IDLE_ARGUMENTS = {"save_dir": "./mlruns", "log_model": False, "prefix": "", "run_id": None, "synchronous": None}
"""Its other arguments, with the values that change nothing."""

CONTEXT_VARIABLE = "MLFLOW_RUN_CONTEXT"
"""The variable from which MLflow takes tags of new runs: nesting is no part of a run's configuration."""


def resolve_tracking_uri(address: str | None) -> str | None:
    """Return an address that is valid in every working directory."""
    if address is None or not address.startswith(SQLITE_PREFIX) or address.startswith(f"{SQLITE_PREFIX}/"):
        return address
    return f"{SQLITE_PREFIX}{Path(address.removeprefix(SQLITE_PREFIX)).resolve()}"


def make_destination(arguments: Mapping[str, Any], name: str, tags: Mapping[str, str]) -> MLflowDestination:
    """Return the destination of a run's record, from the arguments of an MLFlowLogger.

    Args:
        arguments: Arguments of the MLFlowLogger.
        name: Name of the run, unless the arguments give one.
        tags: Tags of the run, beside those of the arguments.

    Raises:
        ValueError: an argument that this delivery has no use for.

    """
    for argument, idle in IDLE_ARGUMENTS.items():
        if arguments.get(argument, idle) != idle:
            raise ValueError(
                f"trainer.logger.init_args.{argument}: a run delivers its record, its files and its adapter itself, "
                f"and has no use for it. Remove it. It uses {', '.join(sorted(USED_ARGUMENTS))}."
            )
    context_tags = json.loads(
        os.environ.get(CONTEXT_VARIABLE, "{}")
    )  # a run that is delivered later still belongs to its campaign
    run_tags = {key: str(value) for key, value in {**context_tags, **tags, **(arguments.get("tags") or {})}.items()}
    return MLflowDestination(
        tracking_uri=resolve_tracking_uri(arguments.get("tracking_uri")),
        experiment_name=arguments.get("experiment_name", "rlcredit"),
        run_name=arguments.get("run_name") or name,
        tags=run_tags,
        artifact_location=arguments.get("artifact_location"),
    )
