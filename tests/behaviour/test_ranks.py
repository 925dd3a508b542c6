"""Two processes that train as one: what a signal or a kill of one of them does."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.small_runs import finish_small_run, read_recorded_steps, start_small_run

DDP = ("--trainer.devices=2", "--trainer.strategy=ddp")
FOLDER = Path("runs") / "grpo-seed0"


def children(pid):
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "rlcredit" in line and "worker_process" not in line]


def stepping(tmp_path, step):
    """Start two processes and wait until they have taken so many steps."""
    process = start_small_run(tmp_path, *DDP, "--trainer.max_steps=400")
    until = time.monotonic() + 240
    while time.monotonic() < until and process.poll() is None:
        try:
            if json.loads((tmp_path / FOLDER / "status.json").read_text())["step"] >= step:
                return process
        except (FileNotFoundError, ValueError):
            pass
        time.sleep(0.05)
    raise AssertionError(process.communicate()[1])


@pytest.mark.slow
def test_a_signal_stops_both_with_one_checkpoint_and_they_go_on(tmp_path, mlflow_database):
    process = stepping(tmp_path, 3)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=90)
    assert process.returncode == 143, err
    assert err.count("to go on from step") == 1
    assert "Traceback" not in err
    done = len(read_recorded_steps(tmp_path))
    status, _, err = finish_small_run(tmp_path, *DDP, f"--trainer.max_steps={done + 1}", "--ckpt_path=last")
    assert status == 0, err
    assert read_recorded_steps(tmp_path) == list(range(done + 1))


@pytest.mark.slow
def test_a_killed_process_ends_the_other_within_a_minute(tmp_path, mlflow_database):
    process = stepping(tmp_path, 3)
    (other,) = children(process.pid)
    os.kill(other, signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    status, _, err = finish_small_run(tmp_path, *DDP, "--trainer.max_steps=4", "--ckpt_path=last")
    assert status == 0, err
    assert read_recorded_steps(tmp_path) == [0, 1, 2, 3]
