import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from rlcredit.base.exit_status import NotFinite
from rlcredit.policy.determinism import disable_config_dropout, prepare_base_model
from rlcredit.policy.policy import TINY, LoRA, Policy

EMBEDDED = Path(__file__).parents[3] / "rlcredit" / TINY


def gpt2(folder):
    """A random GPT-2 with its usual dropouts of a tenth, and the embedded tokenizer."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(vocab_size=384, n_positions=256, n_embd=32, n_layer=2, n_head=2, eos_token_id=2, pad_token_id=0)
    assert config.attn_pdrop == config.resid_pdrop == config.embd_pdrop == 0.1
    GPT2LMHeadModel(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(EMBEDDED / name, folder)
    return Policy(str(folder), LoRA(rank=4, alpha=8))


CONV1D = pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to False")


@CONV1D
def test_a_model_with_dropout_is_sampled_and_trained_as_one_policy(fit, tmp_path):
    run = fit(steps=2, stack=[], policy=gpt2(tmp_path / "gpt2"))
    for step in run.history:  # 0.76 to 1.42 with dropout
        assert 0.999 < step["train/ratio_min"] <= step["train/ratio_max"] < 1.001


@CONV1D
def test_no_dropout_is_left_in_modules_or_configuration(tmp_path):
    policy = gpt2(tmp_path / "gpt2")
    policy.load()
    model = policy.lm.get_base_model()
    assert {module.p for module in model.modules() if isinstance(module, nn.Dropout)} == {0.0}
    kept = {name: value for name, value in vars(model.config).items() if "drop" in name}
    assert kept.pop("summary_first_dropout") == 0
    assert set(kept) == {"attn_pdrop", "resid_pdrop", "embd_pdrop"}
    assert not any(kept.values())


def test_functional_dropout_is_turned_off_where_it_is_configured():
    from transformers import AutoModelForCausalLM, MixtralConfig, OPTConfig

    opt = OPTConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, ffn_dim=16, layerdrop=0.5
    )
    assert opt.dropout == 0.1
    model = AutoModelForCausalLM.from_config(disable_config_dropout(opt))
    assert (model.model.decoder.dropout, model.model.decoder.layerdrop) == (0.0, 0.0)
    assert disable_config_dropout(MixtralConfig(router_jitter_noise=0.1)).router_jitter_noise == 0


def test_dropout_that_no_configuration_holds_is_turned_off():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.AlphaDropout(0.5)).requires_grad_(False)
    assert [layer.p for layer in prepare_base_model(model, "here")[1:]] == [0.0, 0.0]


@pytest.mark.parametrize(("value", "dtype"), [(torch.nan, torch.float32), (-torch.inf, torch.bfloat16)])
def test_a_base_model_with_a_weight_that_is_no_number_is_refused(tmp_path, value, dtype):
    folder = tmp_path / "broken"
    shutil.copytree(EMBEDDED, folder)
    weights = {name: weight.to(dtype) for name, weight in load_file(folder / "model.safetensors").items()}
    spoiled = "model.layers.1.mlp.up_proj.weight"
    weights[spoiled][3, 5] = value
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(NotFinite, match=rf"broken: the weight {spoiled} holds NaN or infinity") as refused:
        Policy(str(folder)).load()
    assert refused.value.status == 3


def test_quantized_storages_are_passed_over():
    model = nn.Linear(2, 2).requires_grad_(False)
    model.weight = nn.Parameter(torch.zeros(4, 1, dtype=torch.uint8), requires_grad=False)
    assert prepare_base_model(model, "here") is model
