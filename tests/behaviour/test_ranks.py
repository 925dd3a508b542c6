"""Two processes that train as one: what a signal or a kill of one of them does."""

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.small_runs import finish_small_run, read_recorded_steps, start_small_run

DDP = ("--trainer.devices=2", "--trainer.strategy=ddp")
FOLDER = Path("runs") / "grpo-seed0"


def find_second_rank(pid):
    """Return the pid of the child that trains as the second of two, as its environment says."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    for child in map(int, listed.split()):
        with suppress(OSError):  # it has ended
            if b"LOCAL_RANK=1" in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
                return child
    raise AssertionError(f"process {pid} has no second rank among {listed.split()}")


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
    os.kill(find_second_rank(process.pid), signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    status, _, err = finish_small_run(tmp_path, *DDP, "--trainer.max_steps=4", "--ckpt_path=last")
    assert status == 0, err
    assert read_recorded_steps(tmp_path) == [0, 1, 2, 3]
