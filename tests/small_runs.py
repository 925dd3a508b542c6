"""Runs of the real command in processes of their own, as small as they can be."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.forks import CommandFork

ROOT = Path(__file__).parents[1]
SMALL = [
    *("fit", f"--config={ROOT / 'configs' / 'tiny.yaml'}", "--threads=1"),
    *("--model.sampling.completions=4", "--model.sampling.max_tokens=40", "--model.validation.max_tokens=40"),
    *("--data.init_args.prompts_per_step=2", "--data.init_args.train_size=64", "--data.init_args.validation_size=8"),
    *("--trainer.val_check_interval=2", "--checkpoint.every_n_train_steps=2"),
]


def start_small_run(cwd, *arguments, fault=None, **environment):
    """Start a small run; ``fault`` is one of tests/batteries/inject_faults.py."""
    command = [ROOT / "tests" / "batteries" / "inject_faults.py", fault, "--"] if fault else ["-m", "rlcredit"]
    return CommandFork([*command, *SMALL, *arguments], cwd, {**os.environ, "OMP_NUM_THREADS": "1", **environment})


def run_test_script(script, folder):
    """Run a script of the tests on a folder, with the scripts of the project beside it, to its end."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")])
    command, environment = [sys.executable, str(script), str(folder)], {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def wait_for_small_run(process, limit=240):
    """Return exit status, output and errors of a run."""
    out, err = process.communicate(timeout=limit)
    return process.returncode, out, err


def finish_small_run(cwd, *arguments, **more):
    return wait_for_small_run(start_small_run(cwd, *arguments, **more))


def finish_command(cwd, *words):
    """Return exit status, output and errors of a command."""
    return wait_for_small_run(CommandFork(["-m", "rlcredit", *words], cwd, {**os.environ}))


def read_recorded_steps(cwd, name="grpo-seed0"):
    """Return the steps at which a small run has recorded its loss."""
    lines = (Path(cwd) / "runs" / name / "record.jsonl").read_text().splitlines()
    return [entry["step"] for entry in map(json.loads, lines) if "train/loss" in entry.get("metrics", {})]


def read_small_run_status(cwd, name="grpo-seed0"):
    return json.loads((Path(cwd) / "runs" / name / "status.json").read_text())


def find_continue_command(err):
    """Return the command that an interrupted run has named."""
    return re.search(r"to go on from step (\d+): (rlcredit .*)", err)
