"""Models that would fail, or be another policy, once their weights are read: refused in one sentence beforehand."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_policies import written
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
    PhiConfig,
    PhiForCausalLM,
)

from rlcredit.command_line.cli import main
from rlcredit.inputs.loadable import absent
from rlcredit.inputs.targets import refuse_policy
from rlcredit.policy import LoRA, Policy

TINY = Path(__file__).parents[3] / "configs" / "tiny.yaml"
EMBEDDED = Path(Policy().location)
SIZES = {"vocab_size": 384, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "pad_token_id": 0}
COMMON = {**SIZES, "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2}


def with_pickled_weights(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def without_template(folder):
    (folder / "chat_template.jinja").unlink()


def with_gguf(folder):
    (folder / "model.safetensors").rename(folder / "model.gguf")


def another(model, config):
    def write(folder):
        torch.manual_seed(0)
        written(model(config), folder)

    return write


GRANITE = another(GraniteForCausalLM, GraniteConfig(**COMMON, logits_scaling=8.0))
GEMMA = another(Gemma2ForCausalLM, Gemma2Config(**COMMON, head_dim=8, final_logit_softcapping=30.0))
COHERE = another(CohereForCausalLM, CohereConfig(**COMMON, logit_scale=0.0625))
PHI = another(PhiForCausalLM, PhiConfig(**COMMON))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_pickled_weights, "has its weights as .bin files, which may run code when read; only safetensors are."),
        (
            with_gguf,
            "GGUF. Make a folder of them and name that: python scripts/fetch_smollm2.py --gguf odd/model.gguf ",
        ),
        (
            without_template,
            "has no chat template, as base models have none. Set model.policy.prompt.chat to false",
        ),
        (GRANITE, "scales, caps or biases its logits (logits_scaling is 8). Scores are taken from hidden states "),
        (GEMMA, "scales, caps or biases its logits (final_logit_softcapping is 30). "),
        (COHERE, "scales, caps or biases its logits (logit_scale is 0.0625). "),
        (PHI, "scales, caps or biases its logits (its output embedding has a bias). "),
    ],
)
@pytest.mark.parametrize("command", ["fit", "validate"])
def test_it_is_refused_before_a_run_is_opened(command, change, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    shutil.copytree(EMBEDDED, "odd")
    change(Path("odd"))
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main([command, f"--config={TINY}", "--model.policy.path=odd"])
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert said.startswith("error: ")
    assert message in said
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["odd"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("policies/smollm2", "Make it: python scripts/fetch_smollm2.py --out policies/smollm2"),
        ("policies/none", "Name a folder that exists, or the id of a hub repository."),
        ("./none", "there is no folder './none' here."),
        ("a/b/c", "there is no folder 'a/b/c' here."),
    ],
)
def test_a_folder_that_is_not_there_is_not_asked_of_the_hub(path, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^model.policy.path: there is no folder") as refused:
        refuse_policy(Policy(path))
    assert message in str(refused.value)


@pytest.mark.parametrize("path", ["tiny", "organisms/decoy", "Qwen/Qwen2.5-0.5B", "gpt2"])
def test_what_is_shipped_or_may_be_on_the_hub_is_not_absent(path):
    assert absent(Policy(path)) is None


def test_the_command_that_saves_pickled_weights_as_safetensors_does_so(tmp_path):
    folder = tmp_path / "odd"
    shutil.copytree(EMBEDDED, folder)
    with_pickled_weights(folder)
    with pytest.raises(ValueError, match="save them as such") as refused:
        refuse_policy(Policy(str(folder)))
    command = str(refused.value).partition("python -c ")[2].strip('"')
    subprocess.run([sys.executable, "-c", command], check=True, capture_output=True)
    saved, before = load_file(folder / "model.safetensors"), load_file(EMBEDDED / "model.safetensors")
    assert all(torch.equal(saved[name], weight) for name, weight in before.items())
    refuse_policy(Policy(str(folder)))


def test_a_gguf_file_is_no_folder(tmp_path):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=r"--gguf .*/model\.gguf --out policies/model"):
        refuse_policy(Policy(str(file)))


def test_the_families_that_are_trained_here_are_not_refused():
    refuse_policy(Policy())


def test_linear_layers_of_gpt2_can_get_an_adapter(tmp_path):
    config = GPT2Config(vocab_size=384, n_positions=64, n_embd=32, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=2)
    folder = written(GPT2LMHeadModel(config), tmp_path / "gpt2").path
    refuse_policy(Policy(folder, LoRA(4, 8, ["c_attn"])))
    refuse_policy(Policy(folder))
    with pytest.raises(ValueError, match="no linear layer is called 'q_proj'"):
        refuse_policy(Policy(folder, LoRA(4, 8, ["q_proj"])))
