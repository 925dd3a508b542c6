"""An experiment of MLflow: found or made, told what it is, and given a view on which held-out results come first."""

import json
import time
from collections.abc import Sequence
from typing import Any

from rlcredit.record.tracker_refusals import DELETED_EXPERIMENT, TrackerRefusal

EXPERIMENT_KIND = "mlflow.experimentKind"
"""The tag by which MLflow's pages tell an experiment of training runs from one of traces."""

TRAINING_KIND = "custom_model_development"
"""Its value for training runs."""

VIEW_KEY = "rlcredit"
"""Key of the saved view."""

SAVED_VIEW = f"mlflow.sharedViewState.{VIEW_KEY}"
"""The tag that holds it. MLflow lists such views under *Views*."""

VIEW_COLUMNS = ("metrics.`val/pass_at_1`", "metrics.`val/pass_at_k`", "params.`stack`", "params.`optimizer.lr`")
"""Columns of the view, beside name, time and duration; of themselves MLflow's pages show no metric."""

CHART_SECTIONS = ("val", "train", "credit", "probe", "tokens", "time")
"""Sections of its charts, in order, of which the first two are open; MLflow fills them."""

RUNS_PAGE = f"runs?workflowType=machine_learning&viewStateShareKey={VIEW_KEY}"
"""End of the address of an experiment's runs; without the type of work, MLflow's pages look for traces."""

MAX_SEARCHED_RUNS = 1000
"""Most runs that are asked for their names."""


def find_or_make_experiment(client: Any, name: str, artifact_location: str | None = None) -> str:
    """Return the id of an experiment, which is made if there is none of this name.

    Raises:
        TrackerRefusal: there was one, and it has been deleted.

    """
    existing = client.get_experiment_by_name(name)
    if existing is None:
        experiment_id = client.create_experiment(name, artifact_location=artifact_location)
        describe_experiment(client, experiment_id, {})
        return experiment_id
    if existing.lifecycle_stage == "deleted":
        raise TrackerRefusal(DELETED_EXPERIMENT.format(name=name, id=existing.experiment_id))
    describe_experiment(client, existing.experiment_id, existing.tags)
    return existing.experiment_id


def describe_experiment(client: Any, experiment_id: str, tags: dict[str, str]) -> None:
    """Tag an experiment as one of training runs, and save a view in it; what somebody has set is left alone.

    Args:
        client: Client of the tracker.
        experiment_id: Id of the experiment.
        tags: Tags that the experiment has.

    """
    from mlflow.exceptions import MlflowException  # noqa: PLC0415

    for tag, value in {EXPERIMENT_KIND: TRAINING_KIND, SAVED_VIEW: render_saved_view()}.items():
        if tag not in tags:
            try:
                client.set_experiment_tag(experiment_id, tag, value)
            except MlflowException:
                return  # pages would look less good, and runs are what counts


def render_saved_view() -> str:
    """Return the saved view as MLflow keeps it: a name, times, and the state of the page as text in JSON."""
    sections = [
        {"uuid": name, "name": name, "display": name in CHART_SECTIONS[:2], "isReordered": False, "isGenerated": True}
        for name in CHART_SECTIONS
    ]
    state = {
        **{"selectedColumns": VIEW_COLUMNS, "columnOrder": [], "columnWidths": {}},
        **{"compareRunCharts": [], "compareRunSections": sections, "isAccordionReordered": True},
    }
    timestamp = int(time.time() * 1000)
    return json.dumps(
        {"name": "Held-out results", "createdAt": timestamp, "updatedAt": timestamp, "state": json.dumps(state)}
    )


def choose_free_run_name(client: Any, experiment_id: str, name: str, leaving: Sequence[str] = ()) -> str:
    """Return the name of a new run, numbered if the experiment holds one of its name: ``grpo-seed0 #2``.

    Args:
        client: Client of the tracker.
        experiment_id: Id of the experiment.
        name: Name of the run without a number.
        leaving: Ids of runs that this one replaces, whose names become free.

    """
    if "'" in name:  # MLflow's filters cannot quote it
        return name
    beginning = f"attributes.run_name LIKE '{name}%'"
    runs = client.search_runs([experiment_id], beginning, max_results=MAX_SEARCHED_RUNS)
    names = {run.info.run_name for run in runs if run.info.run_id not in leaving}
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{name} #{number}"
    return free
