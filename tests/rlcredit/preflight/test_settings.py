"""Cards without products in bfloat16 are refused before anything is made, with the precision that they have."""

import sys

import pytest
import torch

from rlcredit.cli.application import run_lightning_command

TINY = "--config=configs/tiny.yaml"
HALF = "--trainer.precision=16-mixed"


@pytest.fixture
def explain_on_card(monkeypatch, capsys):
    """Run the command on a machine whose card is said to have a compute capability; return what it refuses."""
    monkeypatch.setattr(sys, "argv", ["rlcredit"])

    def explain(capability, *arguments):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
        with pytest.raises(SystemExit) as stop:
            run_lightning_command(["explain", TINY, *arguments, "--trainer.max_steps=0", "--model.pass_k=9"])
        assert stop.value.code == 2
        return capsys.readouterr().err

    return explain


@pytest.mark.parametrize(
    ("arguments", "values", "repair"),
    [
        (["--trainer.precision=bf16-mixed"], "(trainer.precision: bf16-mixed)", "Set trainer.precision: 16-mixed."),
        ([HALF, "--model.policy.dtype=bfloat16"], "(model.policy.dtype: bfloat16)", "Set model.policy.dtype: float16."),
        (
            ["--trainer.precision=bf16-mixed", "--model.policy.dtype=bfloat16"],
            "(trainer.precision: bf16-mixed, model.policy.dtype: bfloat16)",
            "Set trainer.precision: 16-mixed, model.policy.dtype: float16.",
        ),
    ],
    ids=["precision", "weights", "both"],
)
def test_a_card_without_bfloat16_is_refused_with_the_precision_it_has(explain_on_card, arguments, values, repair):
    error = explain_on_card((7, 5), "--trainer.accelerator=auto", *arguments)
    expected = f"bfloat16 needs a card of compute capability 8.0 or more, and the Tesla T4 has 7.5 {values}. {repair}\n"
    assert error.endswith(expected)
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("capability", "arguments"),
    [
        ((8, 0), ["--trainer.precision=bf16-mixed"]),
        ((7, 5), [HALF, "--model.policy.dtype=float16"]),
        ((7, 5), ["--trainer.precision=bf16-mixed", "--trainer.accelerator=cpu"]),
    ],
    ids=["newer card", "16 bits", "processor"],
)
def test_other_cards_and_precisions_go_on_to_the_next_check(explain_on_card, capability, arguments):
    accelerator = [] if "--trainer.accelerator=cpu" in arguments else ["--trainer.accelerator=auto"]
    assert "model.pass_k is 9" in explain_on_card(capability, *accelerator, *arguments)
