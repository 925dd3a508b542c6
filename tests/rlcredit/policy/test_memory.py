"""The four parts of a forecast beside what tensors take, and beside what whole runs took."""

import contextlib

import pytest
import torch
from small_policies import save_as_policy
from torch.autograd.graph import saved_tensors_hooks
from transformers import AutoConfig, AutoModelForCausalLM

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
def test_activations_are_about_what_the_graph_keeps(kind, prompts, dtype, mixed, tmp_path):
    measured = saved_bytes(policy_of(kind, dtype, tmp_path / "policy"), mixed, prompts)
    sizes = parse_architecture({"model_type": kind, **SIZES, **HEADS})
    read = memory.PassSize(prompts, PROMPT, ROWS, TOKENS - 1)
    forecast = memory.forecast_memory(sizes, memory.WeightHolding(dtype), 0, [read], read, is_mixed=mixed)
    assert measured == pytest.approx(forecast.activations, rel=memory.FORECAST_ERROR)


def test_a_cache_holds_keys_and_values_of_every_layer():
    policy = Policy()
    policy.load()
    ids = torch.randint(3, 300, (5, 16))
    _, cache = policy.hidden_states(ids, torch.ones_like(ids), use_cache=True)
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    sizes = parse_architecture(policy.lm.config.to_dict())
    read = memory.PassSize(prompts=5, prompt_tokens=10, rows=5, tokens=6)
    assert memory.forecast_memory(sizes, memory.WeightHolding("float32"), 0, [read]).cache == held


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4 * 172_576), ("bfloat16", 2 * 172_576)])
def test_weights_take_what_their_numbers_take(dtype, size):
    policy = Policy(dtype=dtype)
    policy.load()
    sizes = parse_architecture(policy.lm.config.to_dict())
    frozen = {weight.data_ptr(): weight.nbytes for weight in policy.parameters() if not weight.requires_grad}
    assert memory.weight_bytes(sizes, memory.WeightHolding(dtype)) == size == sum(frozen.values())


def test_quantized_weights_take_what_bitsandbytes_gives_them():
    from bitsandbytes.functional import quantize_4bit

    plain = torch.randn(1024, 512)
    packed, state = quantize_4bit(plain, blocksize=64, compress_statistics=True, quant_type="nf4")
    held = packed.nbytes + state.absmax.nbytes + state.state2.absmax.nbytes
    assert memory.QUANTIZED_BYTES["4bit"] == held / plain.numel()
    sizes = parse_architecture({"model_type": "llama", **SIZES, **HEADS})
    rest = sizes.parameters - sizes.linear_parameters
    assert memory.weight_bytes(sizes, memory.WeightHolding("bfloat16", "8bit")) == sizes.linear_parameters + 2 * rest


def test_experts_are_not_quantized_and_a_token_goes_through_few_of_them():
    experts = {"num_experts": 64, "num_experts_per_tok": 2, "moe_intermediate_size": 40}
    sparse = parse_architecture({"model_type": "qwen3_moe", **SIZES, **HEADS, **experts})
    dense = parse_architecture({"model_type": "qwen3", **SIZES, **HEADS})
    stacked = 3 * 64 * 3 * 128 * 40
    assert memory.weight_bytes(sparse, memory.WeightHolding("bfloat16", "4bit")) > 2 * stacked
    read = memory.PassSize(prompts=1, prompt_tokens=50, rows=1, tokens=50)
    few, many = (memory.activation_bytes(sizes, "bfloat16", read) for sizes in (sparse, dense))
    assert few < many


def test_logits_are_those_of_tokens_that_are_drawn_or_scored_a_chunk_at_a_time():
    sizes, holding = parse_architecture({"model_type": "llama", **SIZES, **HEADS}), memory.WeightHolding("float32")

    def logits(rows, tokens, draws):
        return memory.forecast_memory(sizes, holding, 0, [memory.PassSize(1, 1, rows, tokens)], draws=draws).logits

    assert logits(1, 10, draws=False) == 2 * 4 * 10 * 384
    assert logits(100, 10**4, draws=False) == 2 * uncertainty.LOGIT_CHUNK_BYTES["cpu"]
    assert logits(16, 1, draws=True) == 20 * 16 * 384


def test_layers_in_parts_take_their_share_and_two_of_them_are_whole_and_in_a_buffer():
    config = AutoConfig.for_model("qwen3", **SIZES, **HEADS)
    sizes = parse_architecture(config.to_dict())
    model = AutoModelForCausalLM.from_config(config)
    layers = sum(weight.numel() for weight in model.model.layers.parameters())
    whole = sum(weight.numel() for weight in model.parameters())
    for processes in (1, 2, 8):
        expected = 2 * (whole - layers + layers / processes) + 2 * 2 * layers * 2 / 3
        holding = memory.WeightHolding("bfloat16", None, processes, is_sharded=True)
        assert memory.weight_bytes(sizes, holding) == pytest.approx(expected)


LLAMA_70M = {"vocab_size": 16_000, "hidden_size": 640, "intermediate_size": 1_728, "num_attention_heads": 10}
QWEN3_120M = {
    **{"model_type": "qwen3", "vocab_size": 32_000, "hidden_size": 768, "intermediate_size": 2_304, "head_dim": 64},
    **{"num_hidden_layers": 12, "num_attention_heads": 12, "num_key_value_heads": 4, "tie_word_embeddings": True},
}


@pytest.mark.parametrize(
    ("model", "holding", "decoding", "update", "rollout_bytes", "update_bytes"),
    [
        (
            {**LLAMA_70M, "model_type": "llama", "num_hidden_layers": 12, "tie_word_embeddings": True},
            *(("float32",), (6, 512, 48, 32), (1, 512, 1, 32), 2_229_919_744, 718_495_744),
        ),
        (QWEN3_120M, ("float32",), (2, 512, 16, 64), (2, 512, 4, 64), 1_066_250_240, 1_689_702_400),
        (QWEN3_120M, ("float32",), (4, 512, 16, 32), (2, 512, 2, 32), 1_051_594_752, 1_427_156_992),
        (QWEN3_120M, ("bfloat16",), (2, 512, 16, 64), (1, 512, 1, 64), 457_875_456, 761_090_048),
        (QWEN3_120M, ("float32", None, 2, True), (2, 512, 4, 32), (1, 512, 1, 32), 451_256_320, 888_434_688),
        (QWEN3_120M, ("bfloat16", "4bit"), (2, 512, 16, 32), (1, 512, 1, 32), 301_359_104, 591_511_552),
        (QWEN3_120M, ("float32",), (2, 576, 16, 64), (1, 512, 6, 64), 1_073_451_008, 1_516_687_360),
    ],
    ids=["decoding", "update", "micro", "bfloat16", "sharded", "4bit", "branches"],
)
def test_whole_runs_took_what_is_forecast_give_or_take_30_percent(
    model, holding, decoding, update, rollout_bytes, update_bytes
):
    """Peaks of the resident set, above what Python and libraries take, measured on a machine of two cores."""
    sizes, holding = parse_architecture(model), memory.WeightHolding(*holding)
    layers = sizes.adaptable_layers().values()
    adapter = memory.TRAINED_BYTES * 16 * sum(layer.in_features + layer.out_features for layer in layers)
    forecast = memory.forecast_memory(
        sizes,
        holding,
        adapter,
        [memory.PassSize(*decoding)],
        memory.PassSize(*update),
        draws=not holding.is_sharded,
        merges=holding.dtype == "float32" and not holding.is_sharded,
    )
    taken = forecast.weights + forecast.logits
    assert taken + forecast.cache == pytest.approx(rollout_bytes, rel=memory.FORECAST_ERROR)
    assert taken + forecast.activations == pytest.approx(update_bytes, rel=memory.FORECAST_ERROR)
    assert forecast.peak == pytest.approx(max(rollout_bytes, update_bytes), rel=memory.FORECAST_ERROR)
