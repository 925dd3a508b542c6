import json

import pytest

from rlcredit.record.mlflow_experiment import (
    CHART_SECTIONS,
    EXPERIMENT_KIND,
    SAVED_VIEW,
    choose_free_run_name,
    find_or_make_experiment,
    render_saved_view,
)


@pytest.fixture
def client(mlflow_database, tmp_path):
    from mlflow import MlflowClient

    return MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")


def test_runs_of_one_name_are_numbered(client):
    home = find_or_make_experiment(client, "tiny")
    names = []
    for name in ("grpo-seed1", "grpo-seed1", "grpo-seed10", "grpo-seed1", "it's"):
        names.append(choose_free_run_name(client, home, name))
        client.create_run(home, run_name=names[-1])
    assert names == ["grpo-seed1", "grpo-seed1 #2", "grpo-seed10", "grpo-seed1 #3", "it's"]


def test_the_name_of_a_run_that_is_replaced_is_free(client):
    home = find_or_make_experiment(client, "tiny")
    former = client.create_run(home, run_name="grpo-seed1").info.run_id
    assert choose_free_run_name(client, home, "grpo-seed1", [former]) == "grpo-seed1"


def test_an_experiment_is_tagged_as_one_of_training_runs_once(client):
    home = find_or_make_experiment(client, "tiny")
    assert client.get_experiment(home).tags[EXPERIMENT_KIND] == "custom_model_development"
    client.set_experiment_tag(home, EXPERIMENT_KIND, "mine")
    before = client.get_experiment(home).tags[SAVED_VIEW]
    assert find_or_make_experiment(client, "tiny") == home
    assert client.get_experiment(home).tags[EXPERIMENT_KIND] == "mine"
    assert client.get_experiment(home).tags[SAVED_VIEW] == before


def test_an_experiment_made_without_the_view_gets_it(client):
    home = client.create_experiment("older")
    assert find_or_make_experiment(client, "older") == home
    assert SAVED_VIEW in client.get_experiment(home).tags


def test_a_tracker_that_takes_no_tag_is_not_in_the_way():
    from mlflow.exceptions import MlflowException

    class Strict:
        def get_experiment_by_name(self, name):
            return None

        def create_experiment(self, name, artifact_location):
            return "7"

        def set_experiment_tag(self, *_):
            raise MlflowException("no")

    assert find_or_make_experiment(Strict(), "tiny") == "7"


def test_the_view_begins_with_the_held_out_results():
    view = json.loads(render_saved_view())
    state = json.loads(view["state"])
    assert {"name", "createdAt", "updatedAt"} < view.keys()
    assert state["selectedColumns"][0] == "metrics.`val/pass_at_1`"
    assert [section["name"] for section in state["compareRunSections"]] == list(CHART_SECTIONS)
