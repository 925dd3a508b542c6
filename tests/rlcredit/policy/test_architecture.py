"""Weights are counted as transformers has them: the same model is built there without memory, and counted."""

from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from rlcredit.config import strict_yaml
from rlcredit.policy.architecture import parse_architecture
from rlcredit.policy.policy_sizes import HUB_SIZES

PUBLISHED = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": 134_515_008,
    "meta-llama/Llama-3.2-1B": 1_235_814_400,
    "meta-llama/Llama-3.2-1B-Instruct": 1_235_814_400,
    "Qwen/Qwen2.5-0.5B": 494_032_768,
    "Qwen/Qwen2.5-0.5B-Instruct": 494_032_768,
    "Qwen/Qwen2.5-1.5B": 1_543_714_304,
    "Qwen/Qwen2.5-1.5B-Instruct": 1_543_714_304,
    "Qwen/Qwen2.5-Math-1.5B": 1_543_714_304,
    "Qwen/Qwen2.5-Math-7B": 7_615_616_512,
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": 1_777_088_000,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-4B-Instruct-2507": 4_022_468_096,
    "Qwen/Qwen3-30B-A3B-Instruct-2507": 30_532_122_624,
}
SMALL = {"vocab_size": 101, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
MOE = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 10}
VARIANTS = [
    {"model_type": "llama", "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    {"model_type": "llama", "head_dim": 8, "tie_word_embeddings": False},
    {"model_type": "qwen2", "tie_word_embeddings": True},
    {"model_type": "qwen3", "head_dim": 10, "attention_bias": True, "tie_word_embeddings": False},
    {"model_type": "mistral", "head_dim": 8},
    {"model_type": "gemma", "head_dim": 8},
    {"model_type": "gemma3_text", "head_dim": 8},
    {"model_type": "qwen3_moe", "head_dim": 6, **MOE},
    {"model_type": "qwen3_moe", "head_dim": 6, **MOE, "decoder_sparse_step": 2, "attention_bias": True},
    {"model_type": "qwen3_moe", "head_dim": 6, **MOE, "mlp_only_layers": [0]},
]


def of_transformers(config):
    """The model that transformers builds from the same sizes, without memory."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))


def same(config):
    ours, theirs = parse_architecture(config), of_transformers(config)
    linear = {name: layer for name, layer in theirs.named_modules() if isinstance(layer, nn.Linear)}
    layers = {name: layer for name, layer in linear.items() if layer is not theirs.get_output_embeddings()}
    assert ours.parameters == sum(weight.numel() for weight in theirs.parameters())
    assert {name: tuple(layer) for name, layer in ours.linear_layers().items()} == {
        name: (layer.in_features, layer.out_features, layer.bias is not None) for name, layer in layers.items()
    }
    return ours.parameters


@pytest.mark.parametrize("config", VARIANTS, ids=str)
def test_a_small_model_has_the_weights_and_layers_that_transformers_gives_it(config):
    same({**SMALL, **HEADS, **config})


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_model_of_the_hub_has_as_many_weights_as_published(name):
    assert same(strict_yaml.read_yaml(HUB_SIZES)[name]) == PUBLISHED[name]


def test_every_model_that_a_configuration_names_is_listed():
    configs = Path(__file__).parents[3] / "configs" / "models"
    named = {strict_yaml.read_yaml(file)["model"]["policy"]["path"] for file in configs.glob("*.yaml")}
    assert named - {"policies/smollm2"} <= set(PUBLISHED) == set(strict_yaml.read_yaml(HUB_SIZES))


@pytest.mark.parametrize("config", [{}, {"model_type": "gpt2", **SMALL, **HEADS}, {"model_type": "llama", **SMALL}])
def test_of_another_kind_or_without_a_size_nothing_is_said(config):
    assert parse_architecture(config) is None


def test_a_size_that_is_none_is_no_size():
    assert parse_architecture({"model_type": "llama", **SMALL, **HEADS, "hidden_size": "wide"}) is None
