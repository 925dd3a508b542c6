import json
import re
import sys

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from rlcredit.cli.export import run_export_command
from rlcredit.policy.export import MergedWeights
from rlcredit.run_folder.layout import RunFolder
from tests.rlcredit.cli.trained_run import made


@pytest.fixture(autouse=True)
def run(policy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    return made(policy, tmp_path / "run")


def test_a_run_becomes_a_plain_model(policy, tmp_path, capsys):
    assert run_export_command(["--ckpt_path=run", "--out=plain"]) == 0
    assert capsys.readouterr().out == "tiny, run/checkpoints/last.ckpt (step 4) written to plain, float32\n"
    model = AutoModelForCausalLM.from_pretrained("plain")
    weights = MergedWeights(policy).merge_all_weights()
    assert all(torch.equal(weights[name], weight) for name, weight in model.state_dict().items())
    assert model.generation_config.temperature == 0.8
    card = (tmp_path / "plain" / "README.md").read_text(encoding="utf-8")
    for row in (
        "| steps | 4 |",
        "| temperature | 0.8 |",
        "| command | `rlcredit export --ckpt_path=run --out=plain` |",
    ):
        assert row in card


def test_the_card_names_what_the_run_has_left_of_itself(tmp_path):
    (tmp_path / "run" / "parameters.json").write_text(json.dumps({"stack": "GRPO", "optimizer": "AdamW(lr=0.001)"}))
    config = tmp_path / "run" / "config.yaml"
    config.write_text(f"seed_everything: 3{config.read_text()}")
    for step, share in ((0, 0.25), (4, 0.5)):
        file = RunFolder("run").evaluation_file(step)
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"metrics": {"val/pass_at_1": share}}))
    assert run_export_command(["--ckpt_path=run", "--out=plain"]) == 0
    card = (tmp_path / "plain" / "README.md").read_text(encoding="utf-8")
    assert re.search(r"\| made with \| git_commit \S+, torch \S+, ", card)
    rows = (
        "| held-out pass@1 | 0.250 after 0 steps, 0.500 after 4 |",
        "| condition | grpo |",
        "| seed | 3 |",
        "| stack | GRPO |",
        "| optimizer | AdamW(lr=0.001) |",
        "| steps | 4 |",
    )
    assert [row for row in rows if row not in card] == []


def test_its_adapter_alone_is_what_peft_reads(policy, tmp_path):
    assert run_export_command(["--ckpt_path=run", "--out=adapter", "--adapter_only"]) == 0
    theirs = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(policy.location), "adapter").eval()
    ids = policy.encode_questions(["4 + 3 ="])
    mask = policy.prompt_mask(ids).long()
    ids = ids.clamp(min=0)  # padding is no token
    with torch.no_grad():
        ours = policy.lm(input_ids=ids, attention_mask=mask).logits
        torch.testing.assert_close(theirs(input_ids=ids, attention_mask=mask).logits, ours)
    assert run_export_command(["--adapter=adapter", "--out=again"]) == 0
    model = AutoModelForCausalLM.from_pretrained("again")
    assert all(
        torch.equal(MergedWeights(policy).merge_all_weights()[name], w) for name, w in model.state_dict().items()
    )
    assert (tmp_path / "adapter" / "tokenizer.json").is_file()


def test_rounding_is_said_with_its_size(policy, capsys):
    assert run_export_command(["--ckpt_path=run", "--out=plain", "--dtype=bfloat16"]) == 0
    lost = MergedWeights(policy).rounding_error_share(torch.bfloat16)
    assert f"warning: rounding to bfloat16 changes the weights by {lost:.1%} of what" in capsys.readouterr().err
    assert AutoModelForCausalLM.from_pretrained("plain").dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--ckpt_path=run", "--out=run"), "--out: run is there already. Name another folder."),
        (("--model=tiny", "--out=plain"), "nothing trained is named."),
    ],
)
def test_a_refusal_is_one_line_and_status_2(tmp_path, capsys, args, message):
    assert run_export_command(list(args)) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "plain").exists()
