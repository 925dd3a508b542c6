"""From the record to MLflow: every point once, whatever has happened before."""

import json

import pytest
from mlflow import MlflowClient

from rlcredit.record.delivery import RecordDelivery
from rlcredit.record.destination import MLflowDestination, make_destination
from rlcredit.record.logger import RunRecord
from rlcredit.run_folder.layout import RunFolder


@pytest.fixture
def address(mlflow_template, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlflow.db").write_bytes(mlflow_template.read_bytes())
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path / "run")


def to(address, **more):
    return MLflowDestination(address, "experiment", "grpo-seed0", {"seed": "0"}, **more)


def told(folder, steps, start=0):
    record = RunRecord(folder)
    for step in range(start, steps):
        record.log_metrics({"train/loss": float(step), "val/pass@1": 0.5}, step)
    return record


def runs(address):
    client = MlflowClient(address)
    return client, client.search_runs([each.experiment_id for each in client.search_experiments()])


def history(address, name="train/loss"):
    client, (run,) = runs(address)
    return [(each.step, each.value) for each in client.get_metric_history(run.info.run_id, name)]


def test_every_point_arrives_once_however_often_it_is_brought(folder, address):
    record, goal = told(folder, 3), to(address)
    delivery = RecordDelivery(folder, goal)
    delivery.send_new_entries()
    delivery.send_new_entries()
    record.log_metrics({"train/loss": 3.0}, 3)
    delivery.send_new_entries()
    RecordDelivery(folder, goal).send_new_entries()  # as after a kill
    assert history(address) == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]
    assert history(address, "val/pass1") == [(0, 0.5), (1, 0.5), (2, 0.5)]


def test_what_mlflow_refuses_for_a_while_is_brought_later(folder, address, monkeypatch):
    record, delivery = told(folder, 3), RecordDelivery(folder, to(address))
    delivery.send_new_entries()
    record.log_metrics({"train/loss": 3.0}, 3)
    plain = delivery.store.add_metrics

    def refused(points):
        raise ConnectionError

    monkeypatch.setattr(delivery.store, "add_metrics", refused)
    with pytest.raises(ConnectionError):
        delivery.send_new_entries()
    monkeypatch.setattr(delivery.store, "add_metrics", plain)
    record.log_metrics({"train/loss": 4.0}, 4)
    delivery.send_new_entries()
    assert [step for step, _ in history(address)] == [0, 1, 2, 3, 4]


def test_points_that_arrived_before_a_kill_noted_it_are_not_doubled(folder, address):
    told(folder, 3)
    goal = to(address)
    RecordDelivery(folder, goal).send_new_entries()
    RecordDelivery(folder, to(address, run_id=goal.run_id, arrived=0)).send_new_entries()
    assert history(address) == [(0, 0.0), (1, 1.0), (2, 2.0)]


def test_a_run_that_went_back_to_a_checkpoint_replaces_the_one_in_mlflow(folder, address):
    record = told(folder, 1)
    seen = record.sync()
    told_more = RunRecord(folder, seen)
    for step in (1, 2, 3):
        told_more.log_metrics({"train/loss": -1.0}, step)
    goal = to(address)
    RecordDelivery(folder, goal).send_new_entries()
    former = goal.run_id
    again = RunRecord(folder, seen)
    RecordDelivery(folder, goal).send_new_entries()
    again.log_metrics({"train/loss": 1.0}, 1)
    RecordDelivery(folder, goal).send_new_entries()
    assert goal.run_id != former
    assert history(address) == [(0, 0.0), (1, 1.0)]
    assert MlflowClient(address).get_run(former).info.lifecycle_stage == "deleted"


class Killed(BaseException):
    """No handler gets to see it."""


@pytest.mark.parametrize("had", [False, True])
def test_a_run_whose_id_was_lost_on_the_way_is_found_again(folder, address, monkeypatch, had):
    told(folder, 1)
    goal = to(address)
    if had:  # and is ahead of the record, so that another one is made
        RecordDelivery(folder, goal).send_new_entries()
        RunRecord(folder, 0)
    save = MLflowDestination.save

    def killed(self, path):
        if self.run_id is not None and self.run_id not in self.removes:
            raise Killed
        save(self, path)

    monkeypatch.setattr(MLflowDestination, "save", killed)
    with pytest.raises(Killed):
        RecordDelivery(folder, goal).send_new_entries()
    monkeypatch.setattr(MLflowDestination, "save", save)
    again = MLflowDestination.load(folder.tracking)
    assert again.run_id is None
    RecordDelivery(folder, again).send_new_entries()
    _, found = runs(address)
    assert [run.info.run_id for run in found] == [again.run_id]


def test_a_run_that_mlflow_has_lost_is_made_again(folder, address):
    told(folder, 2)
    RecordDelivery(folder, to(address, run_id="0" * 32, arrived=10**6)).send_new_entries()
    assert history(address) == [(0, 0.0), (1, 1.0)]


def test_a_run_begun_anew_closes_the_one_it_replaces(folder, address):
    told(folder, 1)
    first, second = to(address), to(address)
    RecordDelivery(folder, first).send_new_entries()
    second.closes = [first.run_id, "0" * 32]  # and one that is not there any more
    delivery = RecordDelivery(folder, second)
    delivery.send_new_entries()
    delivery.end_run("FINISHED")
    _, found = runs(address)
    assert {run.info.run_id: run.info.status for run in found} == {
        first.run_id: "KILLED",
        second.run_id: "FINISHED",
    }


def test_files_tables_and_parameters_arrive(folder, address):
    record = RunRecord(folder)
    record.log_hyperparams({"stack": "GRPO" * 100, "steps": 3})
    (folder.path / "config.yaml").write_text("a: 1")
    record.log_file(folder.config)
    (folder.path / "completions").mkdir()
    rows = [{"step": 0, "text": "é"}, {"step": 0, "text": "b"}]
    folder.completions_file(0).write_text(json.dumps(rows))
    record.log_table("completions/step_000000.json")
    goal = to(address)
    RecordDelivery(folder, goal).send_new_entries()
    RecordDelivery(folder, to(address, run_id=goal.run_id)).send_new_entries()  # again: nothing is doubled
    client, (run,) = runs(address)
    assert run.data.params == {"stack": ("GRPO" * 100)[:250], "steps": "3"}
    assert {each.path for each in client.list_artifacts(run.info.run_id)} == {"config.yaml", "completions"}
    table = client.load_table(run.info.experiment_id, "completions/step_000000.json", [run.info.run_id])
    assert table.to_dict("records") == rows


@pytest.mark.parametrize(
    ("given", "word"), [({"log_model": True}, "log_model"), ({"prefix": "x"}, "prefix"), ({"run_id": "1"}, "run_id")]
)
def test_arguments_of_the_logger_that_would_do_nothing_are_refused(given, word):
    with pytest.raises(ValueError, match=word):
        make_destination(given, "name", {})


def test_an_address_may_come_from_the_environment_and_is_not_written_down(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:secret@127.0.0.1:5000")
    goal = make_destination({"experiment_name": "e", "tracking_uri": None}, "name", {"seed": 0})
    assert goal.address.endswith("127.0.0.1:5000")
    goal.save(tmp_path / "tracking.json")
    assert "secret" not in (tmp_path / "tracking.json").read_text() + goal.shown_address
    assert MLflowDestination.load(tmp_path / "tracking.json") == goal
    assert goal.tags == {"seed": "0"}


def test_a_record_without_destination_is_kept_and_goes_nowhere(folder):
    record = told(folder, 2)
    record.close("FINISHED")
    assert not folder.tracking.exists()
