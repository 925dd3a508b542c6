"""Batches of the embedded policy under several stacks, measured once."""

import sys
from dataclasses import replace
from functools import cache

import pytest
import torch

from rlcredit.cards.budget import CardBudget
from rlcredit.cards.card_batch import measure_card_batch
from rlcredit.cards.condition import resolve_card_condition
from tests.rlcredit.cards.cards import OWN

BUDGET = CardBudget("test", 12, 4, 4, 12, 64, (0, 1), 2, 1, 16)
UNASKED = replace(BUDGET, asked=0)


@pytest.fixture(scope="session")
def batch(tmp_path_factory):
    """Return what a stack makes of one batch."""
    folder = tmp_path_factory.mktemp("batches")
    torch.set_num_threads(1)

    @cache
    def made(name):
        file = resolve_card_condition(name).write_files(folder / name)
        return measure_card_batch(["configs/tiny.yaml", str(file)], BUDGET if name == "GRPO" else UNASKED)

    return made


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Return a file with an operator of one's own."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "own_doubled.py"
    file.write_text(OWN)
    yield file
    sys.modules.pop("own_doubled", None)
