"""Inputs that somebody might get wrong, some and several hundred; tests/batteries/fuzz_inputs.py tries ten thousand."""

import sys

import pytest
from fuzz_inputs import OUTCOMES, fuzz_all_inputs, render_fuzz_table


@pytest.mark.parametrize(("count", "seed"), [(20, 8), pytest.param(300, 7, marks=pytest.mark.slow)])
def test_no_input_ends_in_a_traceback(monkeypatch, count, seed):
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    counts, faults = fuzz_all_inputs(count, seed)
    assert faults == []
    found = sum(counts.values(), start=type(next(iter(counts.values())))())
    assert found["refused"] > count * 2 // 3
    assert found["legal"] > count // 30


def test_the_table_counts_every_outcome():
    counts, _ = fuzz_all_inputs(2, seed=0, only="campaign file")
    assert render_fuzz_table(counts).splitlines()[0] == f"| input | tried | {' | '.join(OUTCOMES)} |"
    assert render_fuzz_table(counts).splitlines()[-1].startswith("| all | 2 |")
