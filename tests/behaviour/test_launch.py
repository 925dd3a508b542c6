"""Two processes that somebody else starts: torchrun, and SLURM as far as its environment goes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.small_runs import SMALL, read_recorded_steps

DDP = ("--trainer.devices=2", "--trainer.strategy=ddp", "--trainer.max_steps=2", "--trainer.logger=false")

pytestmark = pytest.mark.slow


def environment(**more):
    return {**os.environ, "OMP_NUM_THREADS": "1", **{name: str(value) for name, value in more.items()}}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_torchrun_starts_both(tmp_path):
    torchrun = [Path(sys.executable).parent / "torchrun", "--nnodes=1", "--nproc-per-node=2"]
    where = ["--master-addr=127.0.0.1", f"--master-port={free_port()}"]
    command = [*torchrun, *where, "-m", "rlcredit", *SMALL, *DDP, "--ckpt_path=auto"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert read_recorded_steps(tmp_path) == [0, 1]


def test_slurm_starts_both(tmp_path):
    slurm = {
        **{"SLURM_NTASKS": 2, "SLURM_NTASKS_PER_NODE": 2, "SLURM_NNODES": 1, "SLURM_NODEID": 0},
        **{"SLURM_JOB_ID": 7, "SLURM_JOB_NAME": "train", "SLURM_NODELIST": "127.0.0.1"},
        **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()},
    }
    command = [sys.executable, "-m", "rlcredit", *SMALL, *DDP, "--trainer.num_nodes=1", "--ckpt_path=auto"]
    tasks = [
        subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment(**slurm, SLURM_PROCID=task, SLURM_LOCALID=task),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for task in (0, 1)
    ]
    said = [task.communicate(timeout=300)[1] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], said
    assert read_recorded_steps(tmp_path) == [0, 1]
