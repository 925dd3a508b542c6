"""What is calculated is what torch keeps: the tensors that a real update saves are counted, storage by storage."""

import contextlib

import pytest
import torch
from small_policies import save_as_policy
from torch.autograd.graph import saved_tensors_hooks
from transformers import AutoConfig, AutoModelForCausalLM

from rlcredit.decoding.fused_forward import FusedForward
from rlcredit.formulas import uncertainty
from rlcredit.policy import memory
from rlcredit.policy.architecture import parse_architecture
from rlcredit.policy.policy import LoRA, Policy
from rlcredit.policy.prompt_format import PADDING

SIZES = {"vocab_size": 384, "hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 3, "head_dim": 32}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
RANK, ROWS, PROMPT, TOKENS = 4, 6, 64, 49


def policy_of(kind, dtype, folder, targets="all-linear"):
    config = AutoConfig.for_model(kind, **SIZES, **HEADS, eos_token_id=2, pad_token_id=0)
    torch.manual_seed(0)
    policy = Policy(
        save_as_policy(AutoModelForCausalLM.from_config(config), folder).path, LoRA(RANK, 8, targets), dtype
    )
    policy.load()
    return policy


def saved_bytes(policy, mixed, prompts):
    """Score completions with a graph; return the bytes that it keeps, without weights and without the head.

    The last token of a completion is read by no layer.
    """
    weights = {weight.untyped_storage().data_ptr() for weight in policy.parameters()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)  # held, so that no address is used twice
        return tensor

    questions = torch.randint(3, 300, (prompts, PROMPT))
    questions[1, :9] = PADDING
    asked = questions.repeat_interleave(ROWS // prompts, 0)
    completions = torch.randint(3, 300, (ROWS, TOKENS))
    context = torch.autocast("cpu", torch.bfloat16) if mixed else contextlib.nullcontext()
    with saved_tensors_hooks(pack, lambda tensor: tensor), context:
        policy.predicting_states(policy.read_prompts(asked), completions)
    return sum(size for size, _ in kept.values())


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("prompts", [2, ROWS])
@pytest.mark.parametrize(
    ("dtype", "mixed"), [("float32", False), ("bfloat16", False), ("bfloat16", True), ("float32", True)]
)
def test_activations_are_what_the_graph_keeps(kind, prompts, dtype, mixed, tmp_path):
    measured = saved_bytes(policy_of(kind, dtype, tmp_path / "policy"), mixed, prompts)
    sizes = parse_architecture({"model_type": kind, **SIZES, **HEADS})
    read = memory.TokensRead(prompts, PROMPT, ROWS, TOKENS - 1)
    calculated = memory.activation_bytes(sizes, dtype, read, ranks=7 * RANK, mixed=mixed)
    if mixed and dtype == "float32":
        calculated += memory.cast_bytes(sizes, passes=2)
    assert 0.98 < measured / calculated < 1.03


def test_the_tokens_of_two_prompts_with_six_completions():
    read = memory.TokensRead(prompts=2, prompt=10, rows=6, tokens=5)
    assert read.number == 2 * 10 + 6 * 5
    assert read.keys == 2 * 10 + 6 * 15
    assert read.pairs == 2 * 10 * 10 + 6 * 5 * 15


def test_a_cache_holds_keys_and_values_of_every_layer():
    policy = Policy()
    policy.load()
    ids = torch.randint(3, 300, (5, 16))
    _, cache = policy.hidden_states(ids, torch.ones_like(ids), use_cache=True)
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    sizes = parse_architecture(policy.lm.config.to_dict())
    assert memory.cache_bytes(sizes, "float32", rows=5, tokens=16) == held


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4 * 172_576), ("bfloat16", 2 * 172_576)])
def test_weights_take_what_their_numbers_take(dtype, size):
    policy = Policy(dtype=dtype)
    policy.load()
    sizes = parse_architecture(policy.lm.config.to_dict())
    frozen = {weight.data_ptr(): weight.nbytes for weight in policy.parameters() if not weight.requires_grad}
    assert memory.weight_bytes(sizes, dtype, None) == size == sum(frozen.values())


def test_quantized_weights_take_what_bitsandbytes_gives_them():
    from bitsandbytes.functional import quantize_4bit

    plain = torch.randn(1024, 512)
    packed, state = quantize_4bit(plain, blocksize=64, compress_statistics=True, quant_type="nf4")
    held = packed.nbytes + state.absmax.nbytes + state.state2.absmax.nbytes
    assert memory.QUANTIZED["4bit"] == held / plain.numel()
    sizes = parse_architecture({"model_type": "llama", **SIZES, **HEADS})
    rest = sizes.parameters - sizes.linear_parameters
    assert memory.weight_bytes(sizes, "bfloat16", "8bit") == sizes.linear_parameters + 2 * rest


def test_experts_are_not_quantized_and_a_token_goes_through_few_of_them():
    experts = {"num_experts": 64, "num_experts_per_tok": 2, "moe_intermediate_size": 40}
    sparse = parse_architecture({"model_type": "qwen3_moe", **SIZES, **HEADS, **experts})
    dense = parse_architecture({"model_type": "qwen3", **SIZES, **HEADS})
    stacked = 3 * 64 * 3 * 128 * 40
    assert memory.weight_bytes(sparse, "bfloat16", "4bit") > 2 * stacked
    read = memory.TokensRead(prompts=1, prompt=50, rows=1, tokens=50)
    few, many = (memory.activation_bytes(each, "bfloat16", read, ranks=16, mixed=False) for each in (sparse, dense))
    assert few < many


def test_logits_of_many_tokens_are_scored_in_chunks():
    sizes = parse_architecture({"model_type": "llama", **SIZES, **HEADS})
    assert memory.logit_bytes(sizes, 10) == 2 * 4 * 10 * 384
    assert memory.logit_bytes(sizes, 10**6) == memory.SCORING == 2 * uncertainty.LOGIT_CHUNK_BYTES


@pytest.mark.parametrize(("kind", "targets"), [("llama", "all-linear"), ("qwen3", ["q_proj", "v_proj", "down_proj"])])
def test_the_fused_decoder_holds_the_factors_of_an_adapter_beside_few_bits(kind, targets, tmp_path):
    policy = policy_of(kind, "bfloat16", tmp_path / "policy", targets)
    parts = [
        part for layer in FusedForward(policy).layers for part in (layer.qkv, layer.out, layer.gate_up, layer.down)
    ]
    held = sum(part.down.nbytes + part.up.nbytes for part in parts if part.down is not None)
    sizes = parse_architecture({"model_type": kind, **SIZES, **HEADS})
    adapted = {
        name: layer
        for name, layer in sizes.linear_layers().items()
        if targets == "all-linear" or name.rpartition(".")[2] in targets
    }
    assert memory.factor_bytes(sizes.linear_layers(), adapted, RANK) == held


def test_layers_in_parts_take_their_share_and_two_of_them_are_whole_and_in_a_buffer():
    config = AutoConfig.for_model("qwen3", **SIZES, **HEADS)
    sizes = parse_architecture(config.to_dict())
    model = AutoModelForCausalLM.from_config(config)
    layers = sum(weight.numel() for weight in model.model.layers.parameters())
    whole = sum(weight.numel() for weight in model.parameters())
    for processes in (1, 2, 8):
        kept = 2 * (whole - layers + layers / processes)
        assert memory.part_bytes(sizes, "bfloat16", processes) == pytest.approx(kept)
        expected = kept + 2 * 2 * layers * 2 / 3
        assert memory.sharded_weight_bytes(sizes, "bfloat16", processes) == pytest.approx(expected)
