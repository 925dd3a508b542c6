"""What people see while a run goes on: the README's command in a real terminal."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MAIN_JOB = re.search(r"rlcredit (fit --config configs/tiny\.yaml)$", (ROOT / "README.md").read_text(), re.MULTILINE)
SMALL = [
    *("--model.sampling.completions=4", "--model.sampling.max_tokens=48", "--data.init_args.prompts_per_step=2"),
    *("--data.init_args.train_size=8", "--data.init_args.validation_size=8", "--trainer.val_check_interval=2"),
    "--threads=1",
]


def seen_on_a_terminal(arguments, cwd):
    """Run a command whose output is a terminal; return its exit status and what the terminal got."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "rlcredit", *arguments]
    environment = {**os.environ, "COLUMNS": "140", "TERM": "xterm"}
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:
        pass  # the terminal is closed at the other end
    os.close(ours)
    return process.wait(), shown.decode(errors="replace")


@pytest.mark.slow
def test_the_main_job_of_the_readme_trains_in_a_terminal_and_counts_steps(tmp_path):
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    status, shown = seen_on_a_terminal([*MAIN_JOB[1].split(), *SMALL, "--trainer.max_steps=4"], tmp_path)
    assert status == 0, shown
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "2/4" in text
    assert "4/4" in text
    assert "held out 0." in text
    assert "Epoch" not in text
