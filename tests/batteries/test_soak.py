"""A few kills of the matrix; tests/batteries/soak.py does all of them, and random ones for as long as one likes."""

import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "tests" / "batteries" / "soak.py"
SOME = r"^(backward:3|question:2|replaced:14|checkpoint_named:1|deliver:2|adapter:1):"


@pytest.mark.slow
def test_killed_runs_end_as_one_that_nothing_happened_to(tmp_path):
    command = [sys.executable, str(SOAK), "matrix", "--stacks", "stateful", "--only", SOME, "--home", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 of 6 cases ended well; 6 faults happened" in done.stdout
