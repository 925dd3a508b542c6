import copy
import importlib.util
import os
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

from callbacks import GRPO
from rlcredit import CreditStack
from rlcredit.cli.new_operator import run_new_command
from tests.conftest import make_rollout
from tests.small_runs import ROOT


@pytest.fixture
def module(tmp_path):
    """The written file, imported."""
    path = tmp_path / "certain_credit.py"
    assert run_new_command(["operator", str(path)]) == 0
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_operator_that_is_written_keeps_to_the_contract(module):
    rollout = make_rollout()
    operator = module.CertainCredit(strength=0.5)
    credited = CreditStack([GRPO(), operator]).assign(rollout)  # checks reads, writes, shapes and values
    before = CreditStack([GRPO()]).assign(rollout).advantages
    assert not torch.equal(credited.advantages, before)
    off = type(operator)(**operator.neutral)
    assert_close(CreditStack([GRPO(), off]).assign(rollout).advantages, before)
    assert type(operator).reads == {"signal", "advantages"}


def test_padding_changes_nothing(module):
    rollout = make_rollout()
    other = copy.copy(rollout)
    other.old_logprobs = rollout.old_logprobs.where(rollout.mask, -9.0)
    one, two = (CreditStack([GRPO(), module.CertainCredit()]).assign(each) for each in (rollout, other))
    assert_close(one.advantages[rollout.mask], two.advantages[rollout.mask])


def test_weights_of_a_completion_are_one_on_average(module):
    """Surprisals 1, 3 with strength 0.5: means are 2, so 1 + 0.5 (0.5 - 1) = 0.75 and 1.25."""
    weights = module.token_weights(torch.tensor([[1.0, 3.0, 7.0]]), torch.tensor([[True, True, False]]), 0.5)
    assert_close(weights[0, :2], torch.tensor([0.75, 1.25]))


@pytest.mark.parametrize("name", ["3x.py", "my-operator.py", "my_operator.txt", "class.py", "Mine.py"])
def test_a_file_that_cannot_be_imported_is_refused(name, tmp_path, capsys):
    assert run_new_command(["operator", str(tmp_path / name)]) == 2
    assert f"error: {name} cannot be imported by name." in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_no_file_is_written_over(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n")
    assert run_new_command(["operator", str(path)]) == 2
    assert f"error: {path} exists." in capsys.readouterr().err
    assert path.read_text() == "x = 1\n"


@pytest.mark.slow
def test_the_operator_that_is_written_can_be_judged_at_once(tmp_path):
    for words in (["new", "operator", "mine.py"], ["card", "mine.py", "--budget", "batch", "--mlflow", "none"]):
        done = subprocess.run(
            [sys.executable, "-m", "rlcredit", *words],
            **{"cwd": tmp_path, "capture_output": True, "text": True},
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
    page = (tmp_path / "cards" / "Mine-batch" / "card.md").read_text(encoding="utf-8")
    assert "Mine" in page
