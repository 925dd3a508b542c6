"""The same run twice is the same run, bit for bit, beside other work: gradients, statistics and draws."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import rlcredit.losses
from callbacks import GRPO
from rlcredit.cli.python_trainer import make_trainer
from rlcredit.cli.run_options import TRAINER_DEFAULTS
from tests.behaviour.repeated_gradients import STACKS
from tests.forks import CommandFork
from tests.slow_cases import mark_others_slow

ROOT = Path(__file__).parents[2]
LOSSES = sorted({*rlcredit.losses.__all__} - {"PolicyLoss", "token_weights"})
CASES = [["ImportanceSampling"], ["ImportanceSampling:900", "KLPenalty:900", *LOSSES], list(STACKS)]
PASSIVE = {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "2"}
"""Threads that sleep while they wait: ones that spin would wait for each other beside other work."""


@pytest.fixture
def busy_machine():
    """A machine whose cores are taken by others, so that two threads of torch arrive in any order."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.parametrize("cases", mark_others_slow(CASES), ids=lambda cases: cases[0])
def test_equal_computations_have_one_result_beside_other_work(cases, busy_machine):
    script = Path(__file__).with_name("repeated_gradients.py")
    command = CommandFork([script, *cases], ROOT, {**os.environ, **PASSIVE})
    out, err = command.communicate()
    assert command.returncode == 0, err
    assert json.loads(out.splitlines()[-1]) == dict.fromkeys(cases, 1)


def test_runs_ask_torch_for_operations_in_a_fixed_order(tmp_path):
    assert TRAINER_DEFAULTS["deterministic"] is True
    try:
        make_trainer([GRPO()], tmp_path, max_steps=1)
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
