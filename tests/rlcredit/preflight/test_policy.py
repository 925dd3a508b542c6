"""Layers that an adapter may be on: linear ones between the embeddings, for the weights of those are read directly."""

import json
import sys
from pathlib import Path

import pytest
from small_policies import save_as_policy
from transformers import BioGptConfig, BioGptForCausalLM

from rlcredit.cli.application import run_lightning_command
from rlcredit.cli.sample import run_sample_command as sample
from rlcredit.evaluation.evaluate_command import run_evaluate_command as evaluate
from rlcredit.policy.adapters import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from rlcredit.policy.architecture import LinearShape
from rlcredit.policy.policy import LoRA, Policy
from rlcredit.preflight.policy import refuse_unloadable_policy, select_lora_layers


@pytest.mark.parametrize(
    ("targets", "named"),
    [
        (["q_proj", "lm_head"], "lm_head"),
        (["embed_tokens"], "model.embed_tokens"),
        (["mlp"], "model.layers.0.mlp"),
        (".*(q_proj|lm_head)", "lm_head"),
        (".*(q_proj|embed_tokens)", "model.embed_tokens"),
        (".*norm", "model.layers.0.self_attn.q_norm"),
        (".*", "model"),
    ],
)
def test_what_is_no_linear_layer_between_the_embeddings_is_refused(targets, named):
    with pytest.raises(ValueError, match="Only linear layers between the embeddings can learn") as refused:
        refuse_unloadable_policy(Policy(lora=LoRA(4, 8, targets)))
    assert str(refused.value).startswith(f"model.policy.lora.targets: {targets!r} names {named}. ")


def test_the_head_is_refused_where_only_sizes_are_known():
    with pytest.raises(ValueError, match=r"^model\.policy\.lora\.targets: \['lm_head'\] names lm_head\."):
        select_lora_layers(Policy(lora=LoRA(4, 8, ["lm_head"])), {"model.layers.0.mlp.up_proj": LinearShape(4, 8)})


def test_a_tied_head_is_refused_by_explain_where_no_weights_are(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    configs = ["--config=configs/base.yaml", "--config=configs/models/qwen3_0.6b.yaml"]  # its embeddings are tied
    with pytest.raises(SystemExit):
        run_lightning_command(["explain", *configs, "--model.policy.lora.targets=[q_proj, lm_head]"])
    error = capsys.readouterr().err
    assert "model.policy.lora.targets: ['q_proj', 'lm_head'] names lm_head. Only linear layers between" in error
    assert error.count("\n") == 1


def test_a_head_of_another_name_is_the_head(tmp_path):
    sizes = {"vocab_size": 384, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    model = BioGptForCausalLM(BioGptConfig(**sizes, num_attention_heads=4, bos_token_id=1, eos_token_id=2))
    folder = save_as_policy(model, tmp_path / "biogpt").path
    refuse_unloadable_policy(Policy(folder))
    with pytest.raises(ValueError, match="names output_projection"):
        refuse_unloadable_policy(Policy(folder, LoRA(4, 8, ["fc1", "output_projection"])))


@pytest.fixture
def on_the_head(policy, tmp_path, monkeypatch):
    """The folder of an adapter that PEFT has put on the head, too."""
    monkeypatch.chdir(tmp_path)
    policy.save_adapter("theirs")
    settings = json.loads(Path("theirs", ADAPTER_CONFIG).read_text())
    Path("theirs", ADAPTER_CONFIG).write_text(json.dumps({**settings, "target_modules": ["q_proj", "lm_head"]}))
    assert Path("theirs", ADAPTER_WEIGHTS).is_file()
    return "theirs"


def test_an_adapter_on_the_head_is_refused_by_every_command_with_a_way_out(on_the_head, capsys):
    Path("sums.yaml").write_text("data: {class_path: ReasoningGym, init_args: {name: chain_sum, prompts_per_step: 1}}")
    assert sample(["--adapter", on_the_head, "--question", "4 + 3 ="]) == 2
    assert evaluate(["--adapter", on_the_head, "--tasks", "sums.yaml", "--mlflow", "none"]) == 2
    for line in capsys.readouterr().err.splitlines():
        assert line.startswith(
            "error: theirs/adapter_config.json: target_modules: ['q_proj', 'lm_head'] names lm_head. "
        )
        assert line.endswith("Merge this one into its model with PEFT and name the merged folder as --model.")
