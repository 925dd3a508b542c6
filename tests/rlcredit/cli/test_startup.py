"""What a command imports before it knows whether there is anything to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlcredit.cli.commands import COMMAND_TABLE

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


def imported_modules(*args):
    """The modules that a command has imported when it ends."""
    code = "import atexit, sys; atexit.register(lambda: print('MODULES', *sys.modules));"
    done = python(f"{code} from rlcredit.__main__ import main; main()", *args)
    assert "MODULES" in done.stdout, done.stderr
    return set(done.stdout.partition("MODULES")[2].split())


def imported(*args):
    """The packages that a command has imported when it ends."""
    return {name.partition(".")[0] for name in imported_modules(*args)}


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["fit", "--help"],
        ["explain", "--config=nowhere.yaml"],
        ["fit", "--config={a: 1, a: 2}"],
        ["fit", "--confg=configs/tiny.yaml"],
        *([name, "--frobnicate"] for name, command in COMMAND_TABLE.items() if command.runs),
    ],
)
def test_help_and_refusals_of_files_and_options_need_no_torch(args):
    assert imported(*args) & {*HEAVY, "torch", "lightning", "torchmetrics", "matplotlib"} == set()


@pytest.mark.parametrize(
    "args",
    [
        ["explain", "--config=configs/tiny.yaml", "--config=configs/conditions/sepa_paper/c8_maxrl_sepa.yaml"],
        pytest.param(["card", "NoSuchOperator"], marks=pytest.mark.slow),
        pytest.param(["list", "losses"], marks=pytest.mark.slow),
    ],
)
def test_what_loads_no_policy_imports_neither_models_nor_trackers(args):
    modules = imported_modules(*args)
    assert "lightning.pytorch" in modules
    allowed = {"scipy", "transformers", "huggingface_hub"}  # torchmetrics imports them
    assert {name.partition(".")[0] for name in modules} & HEAVY <= allowed
    assert not [name for name in modules if name.startswith("transformers.models.qwen")]
