"""Benchmarks compare what is equal."""

import json

import pytest
import torch
from benchmarks import format_median_and_range, measure_in_turns, round_ratios, write_measurements

from studies.machinery.bench_head import HEADS, measure_head
from studies.machinery.bench_stack import assign_token_by_token, make_random_rollout, make_timed_stack
from tests.conftest import THREADS


@pytest.mark.parametrize("name", ["ours", "alone", "naive"])
def test_heads_agree_with_float64(name):
    found = measure_head(name, vocabulary=384, positions=96, width=16)
    assert found["error_logprob"] < 1e-5
    assert found["error_entropy"] < 1e-5
    assert found["error_gradient"] < 1e-5
    assert set(HEADS) == {"ours", "alone", "naive", "trl"}


def test_credit_token_by_token_is_that_of_the_stack():
    rollout = make_random_rollout(32, 300, "cpu")
    plain = assign_token_by_token(rollout)
    for operator in make_timed_stack():
        operator.assign_checked(rollout)
    for row, credit in enumerate(plain):
        assert credit == pytest.approx(rollout.advantages[row, : len(credit)].tolist(), abs=1e-5)


def test_rounds_alternate_and_everything_is_kept(tmp_path):
    calls = []
    found = measure_in_turns({side: lambda side=side: calls.append(side) or len(calls) for side in "ab"}, rounds=3)
    assert calls == list("ababab")
    assert round_ratios(found["b"], found["a"]) == [2, 4 / 3, 6 / 5]
    assert format_median_and_range(found["a"], digits=0) == "3 (1 to 5)"
    write_measurements(tmp_path / "new" / "values.json", seconds=found)
    kept = json.loads((tmp_path / "new" / "values.json").read_text())
    assert kept["seconds"] == found
    assert kept["machine"]["threads"] == THREADS == torch.get_num_threads()
