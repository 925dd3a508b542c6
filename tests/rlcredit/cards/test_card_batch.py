"""The batch that cards are made from."""

import numpy as np
import pytest

from rlcredit.cards.card_batch import measure_card_batch
from rlcredit.cards.condition import resolve_card_condition
from rlcredit.training.micro_batches import MicroBatches
from tests.rlcredit.cards.conftest import BUDGET


@pytest.fixture
def sizes(monkeypatch):
    """Record how many completions are allowed at a time, whenever a batch is cut."""
    seen, cut = [], MicroBatches.split_batch

    def watched(self, lengths, compute):
        seen.append(self.size)
        return cut(self, lengths, compute)

    monkeypatch.setattr(MicroBatches, "split_batch", watched)
    return seen


@pytest.mark.slow
def test_where_memory_may_not_suffice_fewer_completions_are_computed_at_a_time(batch, sizes, monkeypatch, tmp_path):
    whole = batch("GTPO")
    monkeypatch.setattr(
        "rlcredit.preflight.memory.find_memory_share", lambda device, processes: (2**20, "a small machine")
    )
    del sizes[:]
    parts = measure_card_batch(
        ["configs/tiny.yaml", str(resolve_card_condition("GTPO").write_files(tmp_path))], BUDGET, ask=False
    )
    assert set(sizes) == {BUDGET.batch * BUDGET.completions}
    np.testing.assert_allclose(parts.gradients, whole.gradients, atol=1e-6)


def test_where_it_suffices_all_are_computed_at_once(sizes, tmp_path):
    measure_card_batch(
        ["configs/tiny.yaml", str(resolve_card_condition("GTPO").write_files(tmp_path))], BUDGET, ask=False
    )
    assert set(sizes) == {None}
