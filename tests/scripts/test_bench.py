"""Both sides are measured in turn, each alone, and a side that fails leaves a row that says so."""

import json
import sys

import bench
import pytest
import torch
from launch_counts import OperationCounter, read_launches

OURS = {"seconds": {"rollout": [4.0], "verify": [0.1], "update": [2.0, 4.0]}, "tokens": 1e6, "launches": 700}
OURS |= {"bytes": {"rollout": 2**30, "update": 3 * 2**30}, "least": {"rollout": 1.0, "update": 0.3}}
TRL = {"seconds": {"update": [6.0], "step": [9.0]}, "tokens": 2e6, "bytes": {"update": 2**31}}


@pytest.fixture
def orders(monkeypatch, tmp_path):
    """Return a function that runs the benchmark with given sides and returns their order and what was written."""

    def run(*arguments, **results):
        calls = []

        def run_side(side, shape, settings, limit):
            calls.append(side)
            return dict(results.get(side, {"operations": 1e12, "bytes": 1e9}))

        monkeypatch.setattr(bench, "run_side", run_side)
        monkeypatch.setattr(sys, "argv", ["bench.py", "--out", str(tmp_path / "out.json"), *arguments])
        bench.main()
        return calls, json.loads((tmp_path / "out.json").read_text())["shapes"]

    return run


def test_every_round_turns_the_order(orders):
    calls, shapes = orders("--shapes", "llama_70m", "--rounds", "3", ours=OURS, trl=TRL)
    assert calls == ["machine", "ours", "trl", "trl", "ours", "ours", "trl"]
    assert len(shapes["llama_70m"]["ours"]) == len(shapes["llama_70m"]["trl"]) == 3


def test_a_row_has_shares_of_the_limit_and_the_ratio():
    row = bench.tabulate_shape("llama_70m", {"ours": [OURS, OURS], "trl": [TRL, TRL]})
    assert row["rollout of limit"] == "25%"  # 1 of 4 s
    assert row["update of limit"] == "10%"  # 0.3 of 3 s, the median
    assert row["us a token"] == "3.0 (3.0 to 3.0)"  # 3 s for a million tokens
    assert row["TRL us a token"] == "3.0 (3.0 to 3.0)"  # 6 s for two millions
    assert row["of TRL"] == "1.00 (1.00 to 1.00)"
    assert (row["GiB rollout"], row["GiB update"], row["TRL GiB update"]) == ("1.0", "3.0", "2.0")
    assert (row["launches"], row["failed"]) == ("700", "")


def test_a_side_that_fails_is_named_and_others_are_compared_without_it():
    failure = {"failed": "killed by signal 9"}
    row = bench.tabulate_shape("llama_70m", {"ours": [failure, OURS], "trl": [TRL, {**TRL, "tokens": 1e6}]})
    assert row["failed"] == "ours killed by signal 9. "
    assert row["of TRL"] == "0.50 (0.50 to 0.50)"  # the second round alone: 3 of 6 us a token
    row = bench.tabulate_shape("llama_70m", {"ours": [failure], "trl": [failure]})
    assert (row["us a token"], row["of TRL"]) == ("", "")


def test_a_failed_machine_leaves_times_without_limits(orders):
    _, shapes = orders(
        *("--shapes", "llama_70m", "--rounds", "1", "--sides", "trl"), machine={"failed": "no card"}, trl=TRL
    )
    assert shapes == {"llama_70m": {"trl": [TRL]}}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 9)", "killed by signal 9"),
        ("raise MemoryError('too little')", "MemoryError: too little"),
        ("pass", "it said nothing"),
        ("import time; time.sleep(60)", "killed after 2 s"),
    ],
)
def test_the_end_of_a_process_is_told(code, reason, tmp_path, monkeypatch):
    script = tmp_path / "side.py"
    script.write_text(code)
    monkeypatch.setattr(bench, "__file__", str(script))
    assert bench.run_side("ours", "llama_70m", [], limit=2 if "sleep" in code else 60) == {"failed": reason}


def test_the_last_line_of_json_is_the_measurement(tmp_path, monkeypatch):
    script = tmp_path / "side.py"
    script.write_text("""print('{"a": 0}'); print('done'); print('{"a": 1}')""")
    monkeypatch.setattr(bench, "__file__", str(script))
    assert bench.run_side("ours", "llama_70m", [], limit=60) == {"a": 1}


def test_micro_batches_are_a_part_of_all_completions():
    assert bench.choose_row_count(20_480, row_tokens=336, rows=256) == 32  # 60 would fit; 256 has no such part
    assert bench.choose_row_count(100, row_tokens=1_104, rows=256) == 1


def test_prompts_are_padded_to_the_length_that_limits_are_computed_with():
    policy = bench.RandomPolicy("llama_70m")
    policy.tokenizer = bench.load_tokenizer(policy.location)
    task = bench.make_task(4)
    task.setup()
    conversations = [task.build_conversation(example) for example in task.train_set[:8]]
    assert policy.encode_questions(conversations).shape[1] == bench.PROMPT_TOKENS


def test_unknown_tokens_are_decoded_as_known_ones():
    policy = bench.RandomPolicy("llama_70m")
    policy.tokenizer = bench.load_tokenizer(policy.location)
    ids = torch.tensor([policy.tokenizer("4+5=9")["input_ids"]])
    unknown = ids + 16 * len(policy.tokenizer)
    assert policy.decode_pieces(unknown, torch.ones_like(ids)) == [["4", "+", "5", "=", "9"]]


def test_operations_that_compute_are_counted_and_views_are_not():
    left = torch.ones(2, 3, requires_grad=True)
    with OperationCounter() as counter:
        (left.t() @ left.detach()).view(-1).sum().backward()
    assert counter.counts["mm"] == 2  # one forwards, one backwards
    assert counter.counts["sum"] == 1
    assert not {"t", "view", "detach", "expand"} & set(counter.counts)
    assert read_launches(counter) == counter.counts.total()
