"""Adapters from PEFT's folders and from checkpoints are the policy that was saved."""

import json

import pytest
import torch
from small_policies import load_with_random_adapter, save_as_policy
from transformers import GPT2Config, GPT2LMHeadModel

from rlcredit.policy.adapters import (
    ADAPTER_CONFIG,
    install_adapter,
    load_adapter_weights,
    read_adapter_settings,
    refuse_foreign_adapter,
)
from rlcredit.policy.policy import LoRA, Policy
from rlcredit.run_folder.checkpoint_files import write_sealed_checkpoint


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def adapter(here, policy):
    policy.save_adapter(here / "taught" / "adapter")
    return "taught/adapter"


@pytest.fixture
def fresh():
    policy = Policy()
    policy.load(seed=5)
    return policy


@pytest.fixture
def asked(policy):
    prompt_ids = policy.encode_questions(["1 + 2 =", "3 + 4 ="])
    return prompt_ids, torch.randint(5, 90, (2, 7), generator=torch.Generator().manual_seed(0))


def logprobs(policy, asked):
    with torch.no_grad(), policy.evaluation_mode():
        return policy.score_prompts(*asked).logprobs


def test_a_folder_of_peft_gives_back_every_bit(policy, fresh, asked, here, adapter):
    install_adapter(fresh, load_adapter_weights(here / adapter))
    assert torch.equal(logprobs(fresh, asked), logprobs(policy, asked))


def test_a_checkpoint_gives_back_every_bit(policy, fresh, asked, here):
    state = {f"policy.{name}": weight for name, weight in policy.named_parameters() if weight.requires_grad}
    with (here / "a.ckpt").open("w+b") as file:
        write_sealed_checkpoint({"state_dict": state, "global_step": 3}, file)
    install_adapter(fresh, load_adapter_weights(here / "a.ckpt"))
    assert torch.equal(logprobs(fresh, asked), logprobs(policy, asked))


def test_no_adapter_is_the_base_model_bit_for_bit(policy, asked, fresh):
    with policy.disable_adapter():
        base = logprobs(policy, asked)
    assert not torch.equal(base, logprobs(policy, asked))
    install_adapter(fresh, {name: weight for name, weight in policy.named_parameters() if weight.requires_grad})
    install_adapter(fresh, None)
    assert torch.equal(logprobs(fresh, asked), base)


def test_an_adapter_of_other_shapes_is_refused(policy, here, adapter):
    small = Policy(lora=LoRA(rank=2))
    small.load()
    with pytest.raises(
        ValueError,
        match=r"the adapter is not of this model with LoRA rank 2: 42 weights differ.* 16 x 192 instead of 2 x 192",
    ):
        install_adapter(small, load_adapter_weights(here / adapter))


def config(folder, **changes):
    file = folder / ADAPTER_CONFIG
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return folder


def test_a_folder_says_how_its_adapter_is_read(here, adapter):
    lora, base = read_adapter_settings(here / adapter)
    assert lora["rank"] == 16
    assert lora["alpha"] == 32
    assert "q_proj" in lora["targets"]
    assert base == "tiny"


def test_rank_stabilised_adapters_are_scaled_as_peft_scales_them(here, adapter):
    lora, _ = read_adapter_settings(config(here / adapter, use_rslora=True))
    assert lora["alpha"] / lora["rank"] == pytest.approx(32 / 16**0.5)


@pytest.mark.parametrize(
    "odd",
    [
        *({"use_dora": True}, {"bias": "all"}, {"rank_pattern": {"q_proj": 4}}, {"peft_type": "IA3"}),
        *({"modules_to_save": ["lm_head"]}, {"trainable_token_indices": [3]}, {"target_parameters": ["experts.up"]}),
        *({"init_lora_weights": "pissa"}, {"layers_to_transform": [0]}, {"peft_type": None}),
        *({"revision": "v2"}, {"a_setting_of_tomorrow": True}),
    ],
    ids=str,
)
def test_what_is_no_plain_lora_is_refused_with_a_way_out(here, adapter, odd):
    with pytest.raises(ValueError, match=f"{next(iter(odd))} is .* only plain LoRA .* merged folder as --model"):
        read_adapter_settings(config(here / adapter, **odd))


@pytest.mark.parametrize("odd", [{"r": 0}, {"r": None}, {"lora_alpha": "32"}, {"target_modules": None}], ids=str)
def test_settings_that_are_none_are_refused(here, adapter, odd):
    with pytest.raises(ValueError, match="r, lora_alpha and target_modules are "):
        read_adapter_settings(config(here / adapter, **odd))


def test_the_adapter_of_transposed_layers_is_read_again(tmp_path):
    """PEFT notes of GPT-2's that their weights are transposed."""
    shape = {"n_positions": 64, "n_embd": 32, "n_layer": 1, "n_head": 2}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=384, **shape, bos_token_id=1, eos_token_id=2))
    policy = load_with_random_adapter(Policy(save_as_policy(model, tmp_path / "gpt2").path, LoRA(4, 8, ["c_attn"])))
    policy.save_adapter(tmp_path / "adapter")
    assert read_adapter_settings(tmp_path / "adapter")[0] == {"rank": 4, "alpha": 8, "targets": ["c_attn"]}
    refuse_foreign_adapter(policy, load_adapter_weights(tmp_path / "adapter"))


def test_a_folder_without_weights_is_refused(here, adapter):
    (here / adapter / "adapter_model.safetensors").unlink()
    with pytest.raises(ValueError, match="safetensors is missing"):
        read_adapter_settings(here / adapter)
