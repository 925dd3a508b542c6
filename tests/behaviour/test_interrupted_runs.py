"""Runs that a signal ends: saved, said, and ended with a status that tells."""

import shlex
import signal
import time

import pytest
from mlflow import MlflowClient

from rlcredit.run_folder.checkpoint_files import read_checkpoint
from tests.slow_cases import mark_others_slow
from tests.small_runs import (
    SMALL,
    find_continue_command,
    finish_small_run,
    read_recorded_steps,
    start_small_run,
    wait_for_small_run,
)
from tests.terminal import run_until_terminal_closes


def after_step(process, cwd, step, limit=200):
    """Wait until a run has taken so many steps."""
    file = cwd / "runs" / "grpo-seed0" / "status.json"
    until = time.monotonic() + limit
    while time.monotonic() < until and process.poll() is None:
        if file.exists() and f'"step": {step}' in file.read_text():
            return
        time.sleep(0.01)
    raise AssertionError("the run has not come so far")


def statuses(cwd):
    client = MlflowClient(f"sqlite:///{cwd / 'mlflow.db'}")
    experiments = [each.experiment_id for each in client.search_experiments()]
    return [each.info.status for each in client.search_runs(experiments)]


@pytest.mark.parametrize("name", mark_others_slow(["SIGTERM", "SIGINT", "SIGUSR1", "SIGHUP"], fast=0))
def test_a_signal_saves_and_the_command_that_is_named_goes_on(tmp_path, mlflow_database, name):
    process = start_small_run(tmp_path, "--trainer.max_steps=500", "--checkpoint.every_n_train_steps=400")
    after_step(process, tmp_path, 3)
    asked = time.monotonic()
    process.send_signal(signal.Signals[name])
    status, _, err = wait_for_small_run(process)
    assert status == 128 + signal.Signals[name]
    assert time.monotonic() - asked < 40
    assert "Traceback" not in err
    assert err.strip().count("\n") == 0
    step, command = find_continue_command(err).groups()
    assert (
        read_checkpoint(tmp_path / "runs" / "grpo-seed0" / "checkpoints" / "last.ckpt")["global_step"] == int(step) >= 3
    )
    assert read_recorded_steps(tmp_path) == list(range(int(step)))
    assert statuses(tmp_path) == ["KILLED"]
    if name == "SIGTERM":
        last = int(step) + 2
        words = [word for word in shlex.split(command)[2:] if not word.startswith("--trainer.max_steps")]
        assert finish_small_run(tmp_path, *words, f"--trainer.max_steps={last}")[0] == 0
        assert read_recorded_steps(tmp_path) == list(range(last))
        assert statuses(tmp_path) == ["FINISHED"]


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["verify:finalizer:3", "backward:finalizer:3"])
def test_a_signal_in_a_finalizer_stops_the_run_as_anywhere(tmp_path, mlflow_database, phase):
    status, _, err = finish_small_run(tmp_path, "--trainer.max_steps=8", fault=phase)
    assert (status, err.strip().count("\n")) == (130, 0), err
    assert "interrupted by SIGINT after step " in err
    assert len(read_recorded_steps(tmp_path)) == int(find_continue_command(err)[1]) < 8


@pytest.mark.slow
def test_a_run_whose_terminal_is_closed_is_saved(tmp_path):
    arguments = ["--trainer.max_steps=500", "--checkpoint.every_n_train_steps=400", "--trainer.logger=false"]
    status = run_until_terminal_closes([*SMALL, *arguments], tmp_path, "held out after    4")
    assert status == 128 + signal.SIGHUP
    steps = [
        read_checkpoint(path)["global_step"]
        for path in (tmp_path / "runs" / "grpo-seed0" / "checkpoints").glob("step*.ckpt")
    ]
    assert read_recorded_steps(tmp_path) == list(range(max(steps)))
    assert max(steps) >= 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", ["checkpoint:SIGINT:2", "checkpoint_named:SIGTERM:2", "adapter:SIGTERM:1", "curve:SIGHUP:1"]
)
def test_a_signal_while_the_last_results_are_written_waits_for_them(tmp_path, mlflow_database, fault):
    status, _, err = finish_small_run(tmp_path, "--trainer.max_steps=4", fault=fault)
    assert status == 0, err
    assert "interrupted" not in err
    folder = tmp_path / "runs" / "grpo-seed0"
    kept = sorted(each.name for each in (folder / "checkpoints").iterdir())
    assert kept == ["last.ckpt", "step=2.ckpt", "step=4.ckpt"]
    assert (folder / "checkpoints" / "last.ckpt").samefile(folder / "checkpoints" / "step=4.ckpt")
    assert (folder / "adapter").is_dir()
    assert not (folder / "adapter.part").exists()
    assert statuses(tmp_path) == ["FINISHED"]


@pytest.mark.slow
def test_an_evaluation_that_a_signal_cut_short_is_made_up_for(tmp_path, mlflow_database):
    status, _, err = finish_small_run(tmp_path, "--trainer.max_steps=4", fault="question:SIGTERM:2")
    assert status == 143, err
    assert find_continue_command(err)[1] == "2"
    held_out = tmp_path / "runs" / "grpo-seed0" / "held_out"
    assert sorted(path.name for path in held_out.iterdir()) == ["step_000000.json"]
    assert finish_small_run(tmp_path, "--trainer.max_steps=4", "--ckpt_path=auto")[0] == 0
    assert sorted(path.name for path in held_out.iterdir()) == [f"step_00000{step}.json" for step in (0, 2, 4)]
    assert read_recorded_steps(tmp_path) == [0, 1, 2, 3]


@pytest.mark.slow
def test_the_last_evaluation_is_made_up_for_and_then_no_longer_owed(tmp_path, mlflow_database):
    assert finish_small_run(tmp_path, "--trainer.max_steps=2", fault="question:SIGTERM:2")[0] == 143
    last = tmp_path / "runs" / "grpo-seed0" / "checkpoints" / "last.ckpt"
    assert read_checkpoint(last)["evaluation_owed"] is True
    status, _, err = finish_small_run(tmp_path, "--trainer.max_steps=2", "--ckpt_path=auto")
    assert status == 0, err
    assert read_checkpoint(last)["evaluation_owed"] is False
    assert (tmp_path / "runs" / "grpo-seed0" / "held_out" / "step_000002.json").exists()


@pytest.mark.slow
def test_a_signal_during_the_wait_for_mlflow_leaves_the_record_closed(tmp_path, mlflow_database):
    status, _, err = finish_small_run(tmp_path, "--trainer.max_steps=2", fault="close:SIGUSR1:1")
    assert status == 0, err
    assert statuses(tmp_path) == ["FINISHED"]


@pytest.mark.slow
def test_a_signal_before_the_first_step_leaves_nothing_to_continue(tmp_path, mlflow_database):
    status, _, err = finish_small_run(tmp_path, "--trainer.max_steps=4", fault="decode:SIGINT:1")
    assert status == 130
    assert "nothing has been saved yet, and the same command begins anew." in err
    assert "Traceback" not in err
