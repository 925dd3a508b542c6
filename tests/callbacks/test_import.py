"""What an operator imports, and that credit is assigned without Lightning."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import callbacks
from rlcredit.credit.catalogue import find_operator_classes

ROOT = Path(__file__).parents[2]

WITHOUT = """
import sys

sys.modules["lightning"] = None  # as if it were not installed
import torch

from callbacks import GRPO, GTPO, SEPA, StackError, check_stack
from rlcredit.credit.catalogue import import_operators
from rlcredit.credit.rollout import Rollout

import_operators(probes=False)
rollout = Rollout(
    step=0,
    group_size=2,
    prompt_ids=torch.ones(2, 1, dtype=torch.long),
    completion_ids=torch.ones(2, 2, dtype=torch.long),
    mask=torch.ones(2, 2, dtype=torch.bool),
    old_logprobs=torch.tensor([[-1.0, -3.0], [-1.0, -1.0]]),
    entropy=torch.zeros(2, 2),
    correct=torch.tensor([1.0, 0.0]),
    tokens=[["a", "b"], ["c", "d"]],
)
for operator in (GRPO(), GTPO(beta=0.5)):
    operator.assign_checked(rollout)
print(rollout.advantages.tolist())
try:
    check_stack([SEPA(), GTPO()])
except StackError as error:
    print(error)

from rlcredit import CreditStack

print(CreditStack([GRPO(), GTPO(beta=0.5)]).assign(rollout).advantages.tolist())
print(sorted({name.partition(".")[0] for name in sys.modules} & {"transformers", "peft", "mlflow", "torchmetrics"}))
"""


def test_operators_assign_credit_without_lightning():
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", WITHOUT], env={**os.environ, **path}, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "[[0.375, 0.625], [-0.5, -0.5]]",
        "SEPA reads `plan_mask`, which no callback above it writes. Put StrategicGrams above SEPA in the stack.",
        "[[0.375, 0.625], [-0.5, -0.5]]",
        "[]",
    ], done.stderr


def test_every_operator_is_imported_by_its_name():
    for operator in find_operator_classes():
        assert getattr(callbacks, operator.__name__) is operator


def test_a_name_that_is_none_is_no_attribute():
    with pytest.raises(AttributeError, match="has no attribute 'GRRPO'"):
        _ = callbacks.GRRPO
