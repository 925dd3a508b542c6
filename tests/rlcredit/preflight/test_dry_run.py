"""A completion that cannot be computed alone is refused before weights are read, and one that might is not."""

import contextlib
import re
import sys

import pytest

from rlcredit.cli.application import run_lightning_command
from rlcredit.preflight import memory

CONFIGS = ("--config=configs/base.yaml", "--config=configs/models/qwen3_0.6b.yaml", "--trainer.accelerator=cpu")
LONG = "--model.sampling.max_tokens=32768"


@pytest.fixture
def explain_within(monkeypatch, capsys):
    """Run the command on a GPU of so many GiB; return the error in which it ends."""
    monkeypatch.setattr(sys, "argv", ["rlcredit"])

    def explain(room, *arguments):
        monkeypatch.setattr(memory, "find_memory_share", lambda device, processes: (int(room * 2**30), "the GPU"))
        with contextlib.suppress(SystemExit):
            run_lightning_command(["explain", *CONFIGS, *arguments])
        return capsys.readouterr().err

    return explain


def test_a_completion_that_does_not_fit_alone_is_refused_with_bytes_and_repairs(explain_within):
    error = explain_within(3.5, LONG)
    row, weights = (float(size) for size in re.findall(r"([\d.]+) GiB", error)[:2])
    assert weights == pytest.approx(1.1 + 0.6 + 0.5, abs=0.1)  # weights, adapter and libraries
    assert weights + row > 3.5
    assert error.startswith(
        "error: model.sampling.max_tokens: the update of one completion of 32,768 tokens takes at least "
    )
    repair = "Lower it, hold the weights in fewer bits or in parts (model.policy.quantization: 4bit or --trainer.strat"
    assert f"and the GPU has 3.5 GiB. {repair}" in error
    assert error.endswith("or use a larger machine.\n")
    assert error.count("\n") == 1


def test_a_shorter_completion_and_a_larger_card_are_not_refused(explain_within):
    row, weights = (float(size) for size in re.findall(r"([\d.]+) GiB", explain_within(3.5, LONG))[:2])
    assert explain_within(weights + row + 0.1, LONG) == ""
    assert explain_within(12, "--model.sampling.max_tokens=1024") == ""


def test_weights_that_do_not_fit_are_refused_as_such(explain_within):
    assert "model.policy.path: Qwen/Qwen3-0.6B takes at least 2." in explain_within(1, LONG)
