"""Models that would fail, or be another policy, once their weights are read: refused in one sentence beforehand."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_policies import save_as_policy
from transformers import (
    AutoConfig,
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
    NanoChatConfig,
    NanoChatForCausalLM,
    PhiConfig,
    PhiForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from rlcredit.cli.application import run_lightning_command
from rlcredit.policy.policy import LoRA, Policy
from rlcredit.preflight.policy import refuse_unloadable_policy
from rlcredit.preflight.weights import explain_missing_folder, refuse_modified_logits

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
        save_as_policy(model(config), folder)

    return write


GRANITE = another(GraniteForCausalLM, GraniteConfig(**COMMON, logits_scaling=8.0))
GEMMA = another(Gemma2ForCausalLM, Gemma2Config(**COMMON, head_dim=8, final_logit_softcapping=30.0))
COHERE = another(CohereForCausalLM, CohereConfig(**COMMON, logit_scale=0.0625))
NANOCHAT = another(NanoChatForCausalLM, NanoChatConfig(**COMMON, final_logit_softcapping=15.0))
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
        run_lightning_command([command, f"--config={TINY}", "--model.policy.path=odd"])
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
        refuse_unloadable_policy(Policy(path))
    assert message in str(refused.value)


@pytest.mark.parametrize("path", ["tiny", "organisms/decoy", "Qwen/Qwen2.5-0.5B", "gpt2"])
def test_what_is_shipped_or_may_be_on_the_hub_is_not_absent(path):
    assert explain_missing_folder(Policy(path)) is None


@pytest.mark.slow
def test_the_command_that_saves_pickled_weights_as_safetensors_does_so(tmp_path):
    folder = tmp_path / "odd"
    shutil.copytree(EMBEDDED, folder)
    with_pickled_weights(folder)
    with pytest.raises(ValueError, match="save them as such") as refused:
        refuse_unloadable_policy(Policy(str(folder)))
    command = str(refused.value).partition("python -c ")[2].strip('"')
    subprocess.run([sys.executable, "-c", command], check=True, capture_output=True)
    saved, before = load_file(folder / "model.safetensors"), load_file(EMBEDDED / "model.safetensors")
    assert all(torch.equal(saved[name], weight) for name, weight in before.items())
    refuse_unloadable_policy(Policy(str(folder)))


def test_a_gguf_file_is_no_folder(tmp_path):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=r"--gguf .*/model\.gguf --out policies/model"):
        refuse_unloadable_policy(Policy(str(file)))


def test_the_families_that_are_trained_here_are_not_refused():
    refuse_unloadable_policy(Policy())


def described(**changes):
    """Change settings of the model, or remove those that are None."""

    def write(folder):
        settings = {**json.loads((folder / "config.json").read_text()), **changes}
        left = {name: value for name, value in settings.items() if value is not None}
        (folder / "config.json").write_text(json.dumps(left))

    return write


def described_as(kind):
    return lambda folder: AutoConfig.for_model(kind).save_pretrained(folder)


def without(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def with_a_token_more(folder):
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "pad_token": "[PAD]"}))


def without_a_shard(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    shards = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))


def cut_off(folder):
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def with_template(text):
    return lambda folder: (folder / "chat_template.jinja").write_text(text)


SMALLER = another(Qwen3ForCausalLM, Qwen3Config(**{**COMMON, "vocab_size": 380}, head_dim=8))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (described(model_type="new_vl", vision_config={}), "has model type `new_vl` but Transformers does not recogn"),
        (described_as("qwen2_5_vl"), "reads more than text (qwen2_5_vl), and only text models can be trained."),
        (described_as("gemma3"), "reads more than text (gemma3), and only text models can be trained."),
        (described_as("qwen2_audio"), "reads more than text (qwen2_audio), and only text models can be trained."),
        (described_as("fuyu"), "reads more than text (fuyu), and only text models can be trained."),
        (described_as("t5"), "T5Config'> for this kind of AutoModel: AutoModelForCausalLM."),
        (described_as("bert"), "does not continue texts (bert), and only models that do so can be trained."),
        (described_as("vit"), "ViTConfig'> for this kind of AutoModel: AutoModelForCausalLM."),
        (described(architectures=["Qwen3ForSequenceClassification"]), "is saved as Qwen3ForSequenceClassification, "),
        (described(architectures=["Qwen2ForRewardModel"]), "is saved as Qwen2ForRewardModel, and only what is saved "),
        (described(architectures=["Qwen3Model"]), "is saved as Qwen3Model, and only what is saved as ForCausalLM "),
        (described(model_type="mine", auto_map={}), "has model type `mine` but Transformers does not recognize"),
        (described(model_type=None), "Should have a `model_type` key in its config.json."),
        (
            lambda folder: (folder / "config.json").write_text("[]"),
            "Should have a `model_type` key in its config.json.",
        ),
        (without("config.json"), "holds no whole model: config.json is missing."),
        (without("model.safetensors"), "holds no whole model: No such file or directory: odd/model.safetensors."),
        (without("tokenizer.json", "tokenizer_config.json"), "writes no token for a text; a tokenizer.json is missing"),
        (without_a_shard, "No such file or directory: odd/model-00002-of-00002.safetensors."),
        (lambda folder: (folder / "adapter_config.json").write_text("{}"), "is the folder of an adapter"),
        (with_a_token_more, "is larger than its model: of its tokens 1 lie beyond the 384 that have an embedding, '[P"),
        (SMALLER, "is larger than its model: of its tokens 4 lie beyond the 380 that have an embedding, "),
        (NANOCHAT, "scales, caps or biases its logits (final_logit_softcapping is 15). "),
        (cut_off, "holds no whole model: Error while deserializing header"),
        (with_template("{{ messages[0].role }}"), "leaves out the question, so that all prompts are the same."),
        (lambda folder: (folder / "config.json").write_text("{"), "is a folder whose tokenizer and model cannot be "),
    ],
)
def test_what_is_no_model_that_can_be_trained_is_refused_in_one_sentence(change, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EMBEDDED, "odd")
    change(Path("odd"))
    with pytest.raises(ValueError, match=r"^model\.policy\.path: ") as refused:
        refuse_unloadable_policy(Policy("odd"))
    assert message in str(refused.value)
    assert len(str(refused.value)) < 500
    assert "\n" not in str(refused.value)


class Louder(Qwen3ForCausalLM):
    """Scales its logits by a number that no configuration names."""

    def forward(self, *args, **kwargs):
        output = super().forward(*args, **kwargs)
        output.logits = 2 * output.logits
        return output


def test_logits_that_a_model_scales_unsaid_are_found_without_weights():
    config = Qwen3Config(**COMMON, head_dim=8)
    with torch.device("meta"):
        plain, louder = Qwen3ForCausalLM(config), Louder(config)
    refuse_modified_logits(Policy(), config, plain)
    with pytest.raises(ValueError, match=r"\(what it returns is not what its output embedding gives\)"):
        refuse_modified_logits(Policy(), config, louder)


def test_the_command_that_makes_room_for_a_larger_tokenizer_does_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EMBEDDED, "odd")
    with_a_token_more(Path("odd"))
    with pytest.raises(ValueError, match="to it: python -c ") as refused:
        refuse_unloadable_policy(Policy("odd"))
    exec(str(refused.value).partition("python -c ")[2].strip('"'))
    for file in Path("odd").glob("*token*"):
        shutil.copy(file, "NEW")
    shutil.copy("odd/chat_template.jinja", "NEW")
    refuse_unloadable_policy(Policy("NEW"))


def test_linear_layers_of_gpt2_can_get_an_adapter(tmp_path):
    config = GPT2Config(vocab_size=384, n_positions=64, n_embd=32, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=2)
    folder = save_as_policy(GPT2LMHeadModel(config), tmp_path / "gpt2").path
    refuse_unloadable_policy(Policy(folder, LoRA(4, 8, ["c_attn"])))
    refuse_unloadable_policy(Policy(folder))
    with pytest.raises(ValueError, match="no linear layer is called 'q_proj'"):
        refuse_unloadable_policy(Policy(folder, LoRA(4, 8, ["q_proj"])))
