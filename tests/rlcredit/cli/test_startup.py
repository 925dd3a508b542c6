"""What a command imports before it knows whether there is anything to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HEAVY = {
    "mlflow",
    "peft",
    "scipy",
    "sentence_transformers",
    "transformers",
    "bitsandbytes",
    "datasets",
    "huggingface_hub",
}


def python(code, *args):
    """What a fresh process prints and complains about."""
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, "-c", code, *args], env={**os.environ, **path}, capture_output=True, text=True
    )


def imported(*args):
    """The packages that a command has imported when it ends."""
    code = "import atexit, sys; atexit.register(lambda: print('MODULES', *sys.modules));"
    done = python(f"{code} from rlcredit.__main__ import main; main()", *args)
    assert "MODULES" in done.stdout, done.stderr
    return {name.partition(".")[0] for name in done.stdout.partition("MODULES")[2].split()}


@pytest.mark.parametrize(
    "args", [["--help"], ["fit", "--help"], ["explain", "--config=nowhere.yaml"], ["fit", "--config={a: 1, a: 2}"]]
)
def test_help_and_files_that_cannot_be_read_need_no_torch(args):
    assert imported(*args) & {*HEAVY, "torch", "lightning", "torchmetrics", "matplotlib"} == set()
