"""Several hundred inputs that somebody might get wrong; scripts/fuzz_inputs.py tries ten thousand."""

import sys

from fuzz_inputs import OUTCOMES, fuzzed, table


def test_no_input_ends_in_a_traceback(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    counts, faults = fuzzed(300, seed=7)
    assert faults == []
    found = sum(counts.values(), start=type(next(iter(counts.values())))())
    assert found["refused"] > 200
    assert found["legal"] > 10


def test_the_table_counts_every_outcome():
    counts, _ = fuzzed(2, seed=0, only="campaign file")
    assert table(counts).splitlines()[0] == f"| input | tried | {' | '.join(OUTCOMES)} |"
    assert table(counts).splitlines()[-1].startswith("| all | 2 |")
