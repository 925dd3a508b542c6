"""A folder is delivered to a tracker that its deliverer has named."""

import json

import pytest

from rlcredit.cli.deliver import choose_destination, make_deliver_parser, run_deliver_command
from rlcredit.record.destination import MLflowDestination
from rlcredit.run_folder.layout import RunFolder


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


def run_of(here, tracking_uri, **more):
    run = RunFolder(here / "run")
    run.path.mkdir()
    run.record.write_text('{"step":0,"time":1,"metrics":{"a":1}}\n')
    settings = {"tracking_uri": tracking_uri, "experiment_name": "e", "run_name": "n", "tags": {}, **more}
    run.tracking.write_text(json.dumps(settings))
    return run


def named(run, *options):
    return choose_destination(run, make_deliver_parser().parse_args([str(run.path), *options]))


def test_the_usual_database_needs_no_name(here):
    run = run_of(here, f"sqlite:///{here}/mlflow.db", run_id="r")
    assert named(run) == MLflowDestination(f"sqlite:///{here}/mlflow.db", "e", "n", {}, run_id="r")


def test_another_tracker_has_to_be_named(here, capsys, monkeypatch):
    run = run_of(here, "http://elsewhere:5000", run_id="r")
    assert run_deliver_command(["run"]) == 2
    err = capsys.readouterr().err
    assert "rlcredit deliver run --mlflow http://elsewhere:5000" in err
    assert named(run, "--mlflow", "http://elsewhere:5000").run_id == "r"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere:5000")
    assert named(run).run_id == "r"


def test_what_the_caller_names_comes_before_what_the_folder_names(here, monkeypatch):
    run = run_of(here, "http://elsewhere:5000", run_id="r", arrived=10, removes=["s"])
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mine:5000")
    assert named(run) == MLflowDestination(None, "e", "n", {})
    assert named(run, "--mlflow", "http://ours:5000") == MLflowDestination("http://ours:5000", "e", "n", {})
    assert named(run, "--experiment", "f").experiment_name == "f"


def test_a_place_for_files_has_to_be_named(here):
    run = run_of(here, None, artifact_location="s3://elsewhere")
    with pytest.raises(ValueError, match="MLFLOW_TRACKING_URI"):
        named(run)
    with pytest.raises(ValueError, match="--artifact_location s3://elsewhere"):
        named(run, "--mlflow", "http://mine:5000")
    given = named(run, "--mlflow", "http://mine:5000", "--artifact_location", "s3://mine")
    assert given.artifact_location == "s3://mine"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{}", "tracking.json is damaged: tracking_uri is missing"),
        ('{"tracking_uri": 1', "not JSON"),
        ("[]", "its content is [], not a mapping"),
    ],
)
def test_a_damaged_destination_is_named_with_its_field(here, capsys, content, words):
    run_of(here, None).tracking.write_text(content)
    assert run_deliver_command(["run"]) == 2
    assert words in capsys.readouterr().err


def test_a_record_that_names_other_files_is_not_delivered(here, capsys):
    run = run_of(here, "sqlite:///mlflow.db")
    run.record.write_text('{"file": "/etc/hostname", "to": null}\n')
    assert run_deliver_command(["run"]) == 2
    assert "line 1: file is '/etc/hostname'" in capsys.readouterr().err
    assert not (here / "mlflow.db").exists()


def test_a_password_is_not_taken_from_the_command_line(here, capsys):
    assert run_deliver_command(["run", "--mlflow", "http://me:secret@mine:5000"]) == 2
    assert "secret" not in capsys.readouterr().err
