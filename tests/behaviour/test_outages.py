"""Trackers that fail, and disks: training goes on, says so once, and loses nothing."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
from mlflow import MlflowClient

from tests.small_runs import (
    finish_command,
    finish_small_run,
    read_recorded_steps,
    read_small_run_status,
    start_small_run,
    wait_for_small_run,
)

STEPS = ("--trainer.max_steps=4",)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(database, port):
    """A real MLflow server, until the block ends."""
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    process = subprocess.Popen(
        [*command, "--backend-store-uri", f"sqlite:///{database}", "--artifacts-destination", database.parent / "kept"],
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"},
        cwd=database.parent,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).read()
                break
            time.sleep(0.1)
        yield
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def to(port):
    return f"--trainer.logger.init_args.tracking_uri=http://127.0.0.1:{port}"


def arrived(address):
    client = MlflowClient(address)
    (found,) = client.search_runs([each.experiment_id for each in client.search_experiments()])
    steps = [each.step for each in client.get_metric_history(found.info.run_id, "train/loss")]
    files = {each.path for each in client.list_artifacts(found.info.run_id)}
    return found.info.status, steps, files, found.data.tags["seed"]


ALL = {"adapter", "completions", "config.yaml", "heatmap", "held_out", "learning_curve.png"}


@pytest.mark.slow
def test_a_run_goes_to_a_server_and_survives_its_end(tmp_path, mlflow_database):
    port = free_port()
    with server(mlflow_database, port):
        status, _, err = finish_small_run(tmp_path, *STEPS, to(port))
        assert (status, err) == (0, "")
        assert arrived(f"http://127.0.0.1:{port}") == ("FINISHED", [0, 1, 2, 3], ALL, "0")
        _goes_back(tmp_path, port)
        process = start_small_run(tmp_path, *STEPS, to(port), "--condition=second")
        while not list((tmp_path / "runs").glob("second-seed0/held_out/step_000000.json")):
            time.sleep(0.05)
    status, _, err = wait_for_small_run(process)  # the server has died in the middle
    assert status == 0, err
    assert read_recorded_steps(tmp_path, "second-seed0") == [0, 1, 2, 3]
    assert err.count("does not accept the record") == 1
    assert f"`rlcredit deliver runs/second-seed0 --mlflow http://127.0.0.1:{port}` sends the rest." in err
    assert "Traceback" not in err
    with server(mlflow_database, port):
        status, _, err = finish_command(tmp_path, "deliver", "runs", "--mlflow", f"http://127.0.0.1:{port}")
        assert status == 0, err
        client = MlflowClient(f"http://127.0.0.1:{port}")
        found = client.search_runs([each.experiment_id for each in client.search_experiments()])
        assert [each.info.status for each in found] == ["FINISHED"] * 2
        for each in found:
            assert [m.step for m in client.get_metric_history(each.info.run_id, "train/loss")] == [0, 1, 2, 3]
            assert {artifact.path for artifact in client.list_artifacts(each.info.run_id)} == ALL


def _goes_back(folder, port):
    """Continue from a checkpoint that MLflow is ahead of: another run takes the place of the one before."""
    client = MlflowClient(f"http://127.0.0.1:{port}")
    experiments = [each.experiment_id for each in client.search_experiments()]
    (former,) = client.search_runs(experiments)
    (checkpoint,) = (folder / "runs" / "grpo-seed0" / "checkpoints").glob("*=2.ckpt")
    status, _, err = finish_small_run(folder, *STEPS, to(port), f"--ckpt_path={checkpoint}", "--replace")
    assert (status, err) == (0, "")
    assert arrived(f"http://127.0.0.1:{port}") == ("FINISHED", [0, 1, 2, 3], ALL, "0")
    assert client.get_run(former.info.run_id).info.lifecycle_stage == "deleted"


@pytest.mark.slow
def test_a_server_that_accepts_and_never_answers_holds_nobody_up(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        began = time.monotonic()
        status, _, err = finish_small_run(tmp_path, *STEPS, to(deaf.getsockname()[1]))
    assert status == 0
    assert read_recorded_steps(tmp_path) == [0, 1, 2, 3]
    assert "`rlcredit deliver runs/grpo-seed0 --mlflow http" in err
    assert read_small_run_status(tmp_path)["step_seconds"] < 10
    assert time.monotonic() - began < 120


@pytest.mark.slow
def test_a_locked_database_holds_nobody_up(tmp_path, mlflow_database):
    lock = sqlite3.connect(mlflow_database, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    threading.Timer(60, lock.close)  # whatever happens here
    status, _, err = finish_small_run(tmp_path, *STEPS)
    lock.execute("ROLLBACK")
    lock.close()
    assert status == 0, err
    assert read_recorded_steps(tmp_path) == [0, 1, 2, 3]
    assert finish_command(tmp_path, "deliver", "runs/grpo-seed0")[0] == 0
    assert arrived(f"sqlite:///{mlflow_database}") == ("FINISHED", [0, 1, 2, 3], ALL, "0")


def test_nothing_to_deliver_is_an_error(tmp_path):
    status, _, err = finish_command(tmp_path, "deliver", ".")
    assert status == 2
    assert err == "error: there is no run with a record for MLflow in ..\n"


@pytest.mark.slow
def test_an_mlflow_without_room_costs_no_step(tmp_path, mlflow_database):
    status, _, err = finish_small_run(tmp_path, *STEPS, fault="upload:full:1")
    assert status == 0, err
    assert read_recorded_steps(tmp_path) == [0, 1, 2, 3]
    assert arrived(f"sqlite:///{mlflow_database}") == ("FINISHED", [0, 1, 2, 3], ALL, "0")
    assert err.count("does not accept the record") == 1


def test_a_disk_without_room_for_a_checkpoint_stops_the_run_and_says_why(tmp_path, mlflow_database):
    status, _, err = finish_small_run(tmp_path, *STEPS, fault="checkpoint_written:full:2")
    assert status == 4, err
    assert "No checkpoint can be written" in err
    assert "No space left on device" in err
    assert "Make room. To go on from step 2: rlcredit fit" in err
    assert "Traceback" not in err
    folder = tmp_path / "runs" / "grpo-seed0"
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["last.ckpt", "step=2.ckpt"]
    assert finish_small_run(tmp_path, *STEPS, "--ckpt_path=last")[0] == 0
    assert read_recorded_steps(tmp_path) == [0, 1, 2, 3]
    assert json.loads((folder / "tracking.json").read_text())["status"] == "FINISHED"


@pytest.mark.slow
def test_a_disk_that_is_full_before_the_first_checkpoint_is_told_so_and_named_no_checkpoint(tmp_path, mlflow_database):
    status, _, err = finish_small_run(tmp_path, *STEPS, fault="checkpoint_written:full:1")
    assert status == 4, err
    assert "--ckpt_path" not in err
    assert "Make room. No checkpoint has been saved yet, and the same command with --replace begins anew." in err
    assert finish_small_run(tmp_path, *STEPS, "--replace")[0] == 0


@pytest.mark.slow
def test_a_tracker_that_refuses_the_connection_is_told_once_at_the_end(tmp_path):
    status, out, err = finish_small_run(tmp_path, "--trainer.max_steps=1", to(free_port()))
    assert status == 0, err
    assert "does not accept the record of this run (refused connection). The run goes on" in err
    assert "has not received all of this run yet (refused connection); nothing is lost." in err
    assert "in MLflow" not in out


def test_a_folder_that_cannot_be_made_is_refused_in_one_line(tmp_path):
    (tmp_path / "runs").write_text("a file")
    status, _, err = finish_small_run(tmp_path, *STEPS)
    assert status == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "runs" in err


def test_two_runs_do_not_write_in_one_folder(tmp_path, mlflow_database):
    first = start_small_run(tmp_path, "--trainer.max_steps=400")
    while not (tmp_path / "runs" / "grpo-seed0" / "record.jsonl").exists():
        time.sleep(0.05)
    status, _, err = finish_small_run(tmp_path, *STEPS)
    assert status == 2
    assert "another process writes to runs/grpo-seed0." in err
    first.send_signal(signal.SIGTERM)
    assert wait_for_small_run(first)[0] == 143


@pytest.mark.slow
def test_a_run_that_replaces_another_keeps_it_aside_until_it_has_a_checkpoint(tmp_path, mlflow_database):
    assert finish_small_run(tmp_path, *STEPS)[0] == 0
    status, out, err = finish_small_run(tmp_path, "--trainer.max_steps=2", "--replace", fault="decode:kill:2")
    assert status == -9, err
    assert "runs/grpo-seed0/former keeps the run that this one replaces" in out
    folder = tmp_path / "runs" / "grpo-seed0"
    assert not (folder / "adapter").exists()
    assert not list((folder / "checkpoints").glob("*.ckpt"))
    assert (folder / "former" / "adapter" / "adapter_model.safetensors").exists()
    assert (folder / "former" / "checkpoints" / "last.ckpt").exists()
    status, _, err = finish_small_run(tmp_path, *STEPS, "--ckpt_path=last")
    assert (status, err.count("there is no checkpoint")) == (2, 1)
