"""Runs as forks: what they are told, how they end, and that they are what a process of their own would be."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from rlcredit.campaign import forks
from rlcredit.campaign.forks import ensure_fork_server
from rlcredit.campaign.process_identity import read_start_time
from rlcredit.campaign.run_process import GPU_VARIABLE, can_fork_runs, prepare_forks, start_run_process
from rlcredit.run_folder.layout import RunFolder

SMALL = [
    f"--config={Path('configs/tiny.yaml').resolve()}",
    "--trainer.max_steps=2",
    "--trainer.val_check_interval=2",
    "--data.init_args.prompts_per_step=2",
    "--data.init_args.validation_size=8",
    "--trainer.logger=false",
    "--threads=1",
]


def waited(run, seconds=120.0):
    """Return the exit status of a run."""
    end = time.monotonic() + seconds
    while (status := run.poll()) is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    return status


def pid_of(folder):
    """Return the pid that a run has recorded, once it has."""
    record, end = RunFolder(folder).process, time.monotonic() + 60
    while not record.is_file() or not record.read_text():
        assert time.monotonic() < end
        time.sleep(0.01)
    return json.loads(record.read_text())["pid"]


@pytest.mark.slow
def test_a_fork_has_its_own_log_directory_and_status(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("model: {lorra: {rank: 3}}")
    run = start_run_process(tmp_path / "run", ["--config=mine.yaml"], {}, as_fork=True)
    assert waited(run) == 2
    assert "lorra" in RunFolder(tmp_path / "run").log.read_text()
    assert read_start_time(pid_of(tmp_path / "run")) is None


@pytest.mark.slow
def test_a_fork_is_what_a_process_of_its_own_would_be(tmp_path):
    alone, forked = tmp_path / "alone", tmp_path / "forked"
    runs = [
        start_run_process(folder, [*SMALL, f"--trainer.default_root_dir={folder}"], {}, as_fork=folder is forked)
        for folder in (alone, forked)
    ]
    assert [waited(run) for run in runs] == [0, 0], RunFolder(forked).log.read_text()
    weights = [folder / "adapter" / "adapter_model.safetensors" for folder in (alone, forked)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    logs = [RunFolder(folder).log.read_text().replace(str(folder), "") for folder in (alone, forked)]
    assert "2 steps, " in logs[0]
    assert re.sub(r"\d+ s\b", "T s", logs[0]) == re.sub(r"\d+ s\b", "T s", logs[1])


@pytest.mark.slow
def test_a_fork_that_is_killed_takes_what_it_has_started_along(tmp_path):
    run = start_run_process(tmp_path, [*SMALL, f"--trainer.default_root_dir={tmp_path}"], {}, as_fork=True)
    pid = pid_of(tmp_path)
    assert os.getpgid(pid) == pid
    run.kill()
    assert run.poll() == -signal.SIGKILL
    assert read_start_time(pid) is None


@pytest.mark.slow
def test_runs_end_with_their_server_and_the_next_run_has_another(tmp_path):
    server = ensure_fork_server()
    run = start_run_process(tmp_path, [*SMALL, f"--trainer.default_root_dir={tmp_path}"], {}, as_fork=True)
    pid = pid_of(tmp_path)
    server.popen.kill()
    assert waited(run) == -signal.SIGKILL
    server.popen.wait(timeout=10)
    end = time.monotonic() + 10
    while read_start_time(pid) is not None:
        assert time.monotonic() < end
    assert ensure_fork_server() is not server


@pytest.mark.parametrize(("environment", "forks"), [({}, True), ({GPU_VARIABLE: "0"}, False)])
def test_runs_with_a_gpu_are_started_alone(environment, forks, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    assert can_fork_runs(environment) is forks
    monkeypatch.setattr("sys.platform", "darwin")
    assert not can_fork_runs(environment)


@pytest.mark.slow
def test_a_server_prepared_beforehand_is_the_one_that_forks(monkeypatch):
    monkeypatch.setenv(GPU_VARIABLE, "0")
    before = len(forks._started)
    prepare_forks()
    assert len(forks._started) == before
    monkeypatch.delenv(GPU_VARIABLE)
    prepare_forks()
    assert forks._started[-1].is_alive
    assert ensure_fork_server() is forks._started[-1]


@pytest.mark.slow
def test_finished_runs_leave_no_zombies(tmp_path):
    server = ensure_fork_server()
    for number in range(3):
        script = tmp_path / f"run{number}.py"
        script.write_text("")
        with (tmp_path / "log").open("ab") as log:
            assert waited(server.fork([str(script)], os.environ, log.fileno(), log.fileno())) == 0
    end = time.monotonic() + 10
    children = Path(f"/proc/{server.popen.pid}/task/{server.popen.pid}/children")
    while children.read_text().split() and time.monotonic() < end:
        time.sleep(0.05)
    assert children.read_text().split() == []
