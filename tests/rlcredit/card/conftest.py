"""Batches of the embedded policy under several stacks, measured once."""

from functools import cache

import pytest
import torch

from rlcredit.card.batch import measured
from rlcredit.card.budget import Budget
from rlcredit.card.subject import subject

BUDGET = Budget("test", 12, 4, 4, 12, 64, (0, 1), 2, 1, 16)


@pytest.fixture(scope="session")
def batch(tmp_path_factory):
    """Return what a stack makes of one batch."""
    folder = tmp_path_factory.mktemp("batches")
    torch.set_num_threads(1)

    @cache
    def made(name):
        file = subject(name).written(folder / name)
        return measured(["configs/tiny.yaml", str(file)], BUDGET, ask=name == "GRPO")

    return made
