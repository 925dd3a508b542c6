"""Two processes, each with half of the frozen weights, train as two that hold them whole."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from tests.behaviour import two_sharded
from tests.small_runs import ROOT
from tests.training_runs import assert_like_adapter

SCRIPT = Path(two_sharded.__file__)


def start_two(folder, strategy, size, *more, **environment):
    paths = os.pathsep.join([str(ROOT), str(ROOT / "scripts")])
    command = [sys.executable, str(SCRIPT), str(folder), strategy, str(size), *more]
    known = {**os.environ, "PYTHONPATH": paths, **environment}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=known)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return what each process of a run has found, by strategy and tokens per micro-batch."""
    folder, found = tmp_path_factory.mktemp("two"), {}
    for key in [("ddp", 0), ("sharded_base", 0), ("sharded_base", 64)]:
        process = start_two(folder, *key)
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        names = [folder / f"{key[0]}{key[1]}_rank{rank}.pt" for rank in (0, 1)]
        found[key] = [torch.load(name, weights_only=True) for name in names]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 64])
def test_completions_credit_gradients_and_adapters_are_those_of_a_base_that_is_whole(trained, size):
    for whole, parts in zip(trained["ddp", 0], trained["sharded_base", size], strict=True):
        for expected, actual in zip(whole["gradients"], parts["gradients"], strict=True):
            assert max(part.abs().max() for part in expected.values()) > 1e-3
            for name, part in expected.items():
                assert_close(actual[name], part, atol=1e-6, rtol=0)
        for name, weight in whole["adapter"].items():
            assert_close(
                parts["adapter"][name], weight, atol=2e-5, rtol=0
            )  # Adam divides small gradients by their size
        for expected, actual in zip(whole["logged"], parts["logged"], strict=True):
            assert actual["ids"] == expected["ids"]
            numbers = sorted(expected.keys() - {"ids", "train/tokens_per_second"})
            assert actual.keys() == expected.keys()
            assert any("degrees" in name for name in numbers)
            for name in numbers:
                assert actual[name] == pytest.approx(expected[name], rel=1e-4, abs=1e-4), name
    first, second = (each["adapter"] for each in trained["sharded_base", size])
    for name, weight in first.items():
        assert torch.equal(second[name], weight)


@pytest.mark.slow
def test_a_process_holds_half_of_the_layers(trained):
    whole, parts = (trained[key][0] for key in (("ddp", 0), ("sharded_base", 0)))
    assert parts["held"] == whole["held"] - whole["layers"] // 2


@pytest.mark.slow
def test_processes_with_fewer_micro_batches_and_fewer_questions_made_spare_passes(trained):
    assert sum(each["spare"] for each in trained["sharded_base", 64]) > 0
    assert [each["spare"] for each in trained["sharded_base", 0]] == [0, 0]


@pytest.mark.slow
def test_a_killed_process_ends_the_other(tmp_path):
    process = start_two(tmp_path, "sharded_base", 0, "400")
    end = time.monotonic() + 120
    while not (pids := sorted(tmp_path.glob("rank*.pid"))) or len(pids) < 2:
        assert time.monotonic() < end
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    os.kill(int((tmp_path / "rank1.pid").read_text()), signal.SIGKILL)
    process.communicate(timeout=90)
    assert process.returncode not in (0, None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The dirpath has changed", "ignore:You.re resuming from a checkpoint")
def test_a_run_goes_on_with_a_base_in_parts_and_with_a_whole_one(tmp_path, trained):
    process = start_two(tmp_path, "sharded_base", 0, "1")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    (checkpoint,) = tmp_path.rglob("*.ckpt")
    held = torch.load(checkpoint, weights_only=True)["state_dict"]
    assert held.keys() == trained["ddp", 0][0]["adapter"].keys()
    expected = trained["sharded_base", 0][0]["adapter"]
    two, one = tmp_path / "two", tmp_path / "one"
    two.mkdir()
    one.mkdir()
    process = start_two(two, "sharded_base", 0, "2", str(checkpoint))
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    again = torch.load(two / "sharded_base0_rank0.pt", weights_only=True)["adapter"]
    alone = two_sharded.train(one, 0, 2, str(checkpoint))["adapter"]
    for name, weight in expected.items():
        assert torch.equal(again[name], weight)
        assert_close(alone[name], weight, atol=2e-5, rtol=0)


def train_ahead(folder, strategy, *more):
    """Train two processes with an engine that is one rollout ahead; return what the first has found."""
    folder.mkdir()
    process = start_two(folder, strategy, 1, *more, AHEAD="1")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return torch.load(folder / f"{strategy}1_rank0.pt", weights_only=True)


@pytest.mark.slow
def test_rollouts_ahead_are_alike_in_whole_bases_and_in_parts_and_a_run_goes_on_with_them(tmp_path, trained):
    whole, parts = train_ahead(tmp_path / "whole", "ddp", "3"), train_ahead(tmp_path / "parts", "sharded_base", "3")
    for expected, actual in zip(whole["logged"], parts["logged"], strict=True):
        assert actual["ids"] == expected["ids"]
        assert actual["train/mismatch_kl"] == pytest.approx(expected["train/mismatch_kl"], abs=1e-4)
    stale = [logged["train/mismatch_max"] for logged in whole["logged"]]
    assert stale[0] < 1e-4 < 1e-3 < min(stale[1:])
    assert whole["logged"][0]["ids"] == trained["ddp", 0][0]["logged"][0]["ids"]
    assert_like_adapter(parts["adapter"], whole["adapter"])
    train_ahead(tmp_path / "begun", "sharded_base", "1")
    (checkpoint,) = (tmp_path / "begun").rglob("*.ckpt")
    rest = train_ahead(tmp_path / "rest", "sharded_base", "3", str(checkpoint))
    assert all(torch.equal(rest["adapter"][name], weight) for name, weight in parts["adapter"].items())
