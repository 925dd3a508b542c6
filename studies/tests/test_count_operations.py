"""Operations of an update are told apart by layer, and a projection is what its parts add up to."""

from collections import Counter

import pytest

from studies.machinery import count_operations
from studies.one_card.project_update import SMALL, list_projections


def test_a_layer_takes_what_two_have_more_than_one(monkeypatch):
    """Two micro-batches: 10 of 30 products belong to a layer, 5 in each; the optimizer steps once."""
    counts = {
        1: {"forward": Counter(mm=20), "backward": Counter(), "optimizer": Counter(add=7)},
        2: {"forward": Counter(mm=30), "backward": Counter(), "optimizer": Counter(add=9)},
    }
    monkeypatch.setattr(count_operations, "count_update", lambda shape, layers: counts[layers])
    assert count_operations.list_rows("x") == [
        {"shape": "x", "phase": "forward", "operation": "mm", "layer": "5", "outside": 10},
        {"shape": "x", "phase": "optimizer", "operation": "add", "layer": "2", "outside": 5},
    ]


@pytest.mark.slow
def test_an_update_is_counted_from_its_loss_to_its_step():
    counts = count_operations.count_update("llama_70m", 1)
    assert counts["forward"]["mm"] >= 2 * 7  # two micro-batches through the seven linear layers
    assert counts["backward"]["mm"] > counts["forward"]["mm"]
    assert counts["optimizer"]["sqrt"] + counts["optimizer"]["_foreach_sqrt_"] >= 1


def test_before_the_rewrite_a_layer_took_so_many_operations():
    rows = count_operations.tabulate_counts()
    assert [row["a layer, before"] for row in rows if row["phase"] == "backward"] == ["464", "552"]


def test_a_faster_path_is_projected_to_be_faster():
    seconds = [float(row["seconds"]) for row in list_projections()]
    assert seconds == sorted(seconds[:5], reverse=True) + sorted(seconds[5:], reverse=True)
    # 262,144 tokens in blocks of one: 30 layers x 82 operations x 263,168 x 5 us, and nothing else counts.
    assert SMALL.project(1, False, 1.0, 10)[0] == pytest.approx(30 * 82 * 263_168 * 5e-6, rel=0.01)
