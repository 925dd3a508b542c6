"""Without padding, prompts once: the states, scores and gradients of the model's own pass, for every known kind."""

import itertools

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoConfig, AutoModelForCausalLM

from rlcredit.policy.architecture import DECODER_KINDS
from rlcredit.policy.memory import PassSize, estimate_update_cost
from rlcredit.policy.packed_forward import (
    PACKED_KINDS,
    PackedForward,
    find_packed_forward,
    find_packing_obstacle,
    is_packed_forward_exact,
)
from rlcredit.policy.policy import LoRA, Policy, add_lora_adapter
from rlcredit.policy.prompt_format import PADDING

SIZES = {
    **{"vocab_size": 300, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "head_dim": 8},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "eos_token_id": 2, "pad_token_id": 0},
    **{"tie_word_embeddings": True, "max_position_embeddings": 256},
}
CASES = {
    "llama": {"model_type": "llama"},
    "llama with biases": {"model_type": "llama", "attention_bias": True, "mlp_bias": True},
    "llama with stretched positions": {
        "model_type": "llama",
        "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10_000.0},
    },
    "mistral with a window": {"model_type": "mistral", "sliding_window": 9},
    "qwen2": {"model_type": "qwen2"},
    "qwen3": {"model_type": "qwen3"},
    "qwen3_moe": {
        **{"model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2},
        **{"moe_intermediate_size": 16, "decoder_sparse_step": 2},
    },
    "gemma": {"model_type": "gemma"},
    "gemma3 with windows": {"model_type": "gemma3_text", "sliding_window": 9, "query_pre_attn_scalar": 8},
}
TEMPERATURE = 0.7


def make_policy(case, dtype="float32", targets="all-linear", seed=0):
    """Return a small policy with random weights, all of which act."""
    config = AutoConfig.for_model(**{**SIZES, **CASES[case]})
    model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype)).requires_grad_(False)
    policy = Policy(lora=LoRA(4, 8, targets), dtype=dtype)
    policy.lm = add_lora_adapter(model, policy.lora).eval()
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in policy.named_parameters():
            values = torch.randn(weight.shape, generator=noise)
            scale = (
                0.3 if "embed" in name or "lora_B" in name else 0.1 if weight.dim() == 1 else weight.shape[-1] ** -0.5
            )
            weight.copy_(scale * values + (1.0 if weight.dim() == 1 and "gemma" not in case else 0.0))
    return policy


def make_rows(prompts=3, group=3, width=14, seed=2):
    noise = torch.Generator().manual_seed(seed)
    prompt_ids = torch.randint(3, 300, (prompts, 12), generator=noise)
    prompt_ids[1, :5], prompt_ids[2, :9] = PADDING, PADDING
    lengths = torch.randint(1, width + 1, (prompts * group,), generator=noise)
    lengths[0], lengths[1] = width, 1
    completion_ids = torch.randint(3, 300, (prompts * group, width), generator=noise)
    return prompt_ids.repeat_interleave(group, 0), completion_ids, torch.arange(width) < lengths[:, None]


def read_own(policy, prompt_ids, completion_ids, mask):
    scores = policy.score_prompts(prompt_ids, completion_ids, TEMPERATURE)
    return scores.logprobs[mask], scores.entropy[mask]


def read_packed(policy, *rows, recomputed_layers=0):
    states, layout = PackedForward(policy).read_rows(*rows, recomputed_layers)
    scores = policy.score_states(states, layout.targets, TEMPERATURE)
    return scores.logprobs, scores.entropy


def differentiate(policy, logprobs, entropy):
    """Return gradients of sums in which every token has another share."""
    weights = {name: weight for name, weight in policy.named_parameters() if weight.requires_grad}
    value = (logprobs * torch.linspace(-1, 1, len(logprobs))).sum() + 0.1 * entropy.sum()
    return dict(zip(weights, torch.autograd.grad(value, list(weights.values())), strict=True))


def assert_same(policy, rows, **options):
    (logprobs, entropy), (packed_logprobs, packed_entropy) = (
        read_own(policy, *rows),
        read_packed(policy, *rows, **options),
    )
    assert_close(packed_logprobs, logprobs, atol=1e-5, rtol=1e-5)
    assert_close(packed_entropy, entropy, atol=1e-5, rtol=1e-5)
    expected = differentiate(policy, logprobs, entropy)
    for name, gradient in differentiate(policy, packed_logprobs, packed_entropy).items():
        # The model's own pass lies 9e-6 from that in float64 for windows of mistral, this one 4e-6.
        assert (gradient - expected[name]).norm() <= 1.2e-5 * expected[name].norm(), name


def test_every_kind_is_tried():
    assert {case["model_type"] for case in CASES.values()} == {*PACKED_KINDS} == {*DECODER_KINDS}


@pytest.mark.parametrize("case", CASES)
def test_scores_and_gradients_are_those_of_the_models_own_pass(case):
    policy = make_policy(case)
    assert find_packing_obstacle(policy.lm.config.to_dict(), "float32", None, torch.float32) is None
    assert is_packed_forward_exact(policy, PackedForward(policy))
    assert_same(policy, make_rows())


@pytest.mark.parametrize("layers", [1, 3, 4])
def test_layers_that_are_computed_again_change_nothing(layers):
    policy, rows = make_policy("qwen3"), make_rows()
    expected, actual = (
        differentiate(policy, *read_packed(policy, *rows, recomputed_layers=number)) for number in (0, layers)
    )
    for name, gradient in actual.items():
        assert torch.equal(gradient, expected[name]), name


def test_a_graph_can_be_used_twice():
    policy = make_policy("qwen3")
    logprobs, _ = read_packed(policy, *make_rows(), recomputed_layers=2)
    weights = [weight for weight in policy.parameters() if weight.requires_grad]
    one, two = (torch.autograd.grad(logprobs.sum(), weights, retain_graph=True) for _ in range(2))
    assert all(map(torch.equal, one, two))


@pytest.mark.parametrize("targets", [["q_proj", "v_proj"], ["up_proj"], ["o_proj", "down_proj", "k_proj"]], ids=str)
def test_some_layers_may_have_no_adapter(targets):
    assert_same(make_policy("llama with biases", targets=targets), make_rows())


def test_completions_of_one_token_and_prompts_of_one_completion_are_rows_too():
    policy = make_policy("qwen2")
    assert_same(policy, make_rows(prompts=5, group=1))
    prompt_ids, completion_ids, mask = make_rows()
    assert_same(policy, (prompt_ids, completion_ids[:, :1], mask[:, :1]))
    shuffled = torch.tensor([4, 0, 8, 3, 1])
    assert_same(policy, (prompt_ids[shuffled], completion_ids[shuffled], mask[shuffled]))


def test_another_adapter_acts_and_none_does_where_it_is_disabled():
    policy, rows = make_policy("qwen3"), make_rows()
    factors = policy.create_adapter(torch.Generator().manual_seed(3))
    factors = [torch.randn_like(factor, requires_grad=True) * 0.2 for factor in factors]
    with policy.use_adapter(factors):
        own, packed = (read(policy, *rows)[0] for read in (read_own, read_packed))
    assert_close(packed, own, atol=1e-4, rtol=1e-5)
    for one, two in zip(*(torch.autograd.grad(logprobs.sum(), factors) for logprobs in (own, packed))):
        assert (two - one).norm() <= 1e-5 * one.norm()
    with policy.disable_adapter():
        own, packed = (read(policy, *rows)[0] for read in (read_own, read_packed))
    assert_close(packed, own, atol=1e-5, rtol=1e-5)
    assert not packed.requires_grad
    assert (packed - read_packed(policy, *rows)[0]).abs().max() > 0.1


@pytest.mark.parametrize("is_mixed", [True, False], ids=["mixed", "plain"])
@pytest.mark.parametrize("case", ["llama", "qwen2", "qwen3", "gemma", "gemma3 with windows"])
def test_in_fewer_bits_it_is_no_farther_from_float32(case, is_mixed):
    """The mean of eight policies: one of them may round either way."""
    errors = torch.zeros(2, 2)
    rows = make_rows(prompts=6, group=4, width=40)
    for seed in range(8):
        policy, exact = make_policy(case, "bfloat16", seed=seed), make_policy(case, seed=seed)
        with torch.no_grad():
            for weight, rounded in zip(exact.parameters(), policy.parameters(), strict=True):
                weight.copy_(rounded)
        expected_logprobs, entropy = read_own(exact, *rows)
        expected = torch.cat([part.flatten() for part in differentiate(exact, expected_logprobs, entropy).values()])
        for number, read in enumerate((read_own, read_packed)):
            with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
                logprobs, entropy = read(policy, *rows)
            gradient = torch.cat([part.flatten() for part in differentiate(policy, logprobs, entropy).values()])
            errors[number] += torch.stack(
                [(logprobs - expected_logprobs).square().mean().sqrt(), (gradient - expected).norm() / expected.norm()]
            ).detach()
    assert (errors[1] <= 1.1 * errors[0]).all(), errors / 8


def test_weights_in_four_bits_are_unpacked_layer_by_layer():
    policy = Policy(quantization="4bit")
    policy.load()
    with torch.no_grad():
        for name, weight in policy.named_parameters():
            if "lora_B" in name:
                weight.copy_(0.05 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    rows = make_rows()
    own, packed = (read(policy, *rows) for read in (read_own, read_packed))
    assert_close(packed[0], own[0], atol=2e-4, rtol=1e-4)
    expected = differentiate(policy, *own)
    for name, gradient in differentiate(policy, *packed).items():
        assert (gradient - expected[name]).norm() <= 1e-3 * expected[name].norm(), name


def test_small_layers_on_a_processor_are_left_to_the_models_own_pass(monkeypatch):
    policy = make_policy("qwen3")
    assert find_packed_forward(policy) is None
    policy.packed_passes.clear()
    monkeypatch.setattr("rlcredit.policy.packed_forward.MAX_MERGED_WEIGHTS", 0)
    packed = find_packed_forward(policy)
    assert isinstance(packed, PackedForward)
    assert find_packed_forward(policy) is packed


def test_a_pass_that_computes_something_else_is_not_used(monkeypatch):
    monkeypatch.setattr("rlcredit.policy.packed_forward.MAX_MERGED_WEIGHTS", 0)
    policy = make_policy("qwen3")
    with torch.no_grad():
        policy.lm.get_base_model().model.layers[2].self_attn.scaling *= 1.5
    assert isinstance(find_packed_forward(policy), PackedForward)  # it reads what the model has
    policy.packed_passes.clear()
    monkeypatch.setattr("rlcredit.policy.packed_forward.PackedLayer._attend", lambda self, qkv, *_: qkv[:, :32])
    assert find_packed_forward(policy) is None


@pytest.mark.parametrize(
    ("changes", "settings", "reason"),
    [
        ({"model_type": "gpt2"}, {}, "its architecture is gpt2"),
        ({}, {"quantization": "8bit"}, "its weights are held in 8bit"),
        ({"hidden_act": "relu"}, {}, "its activation is relu"),
        (
            {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}},
            {},
            "its rotary embedding is dynamic",
        ),
        ({}, {"dtype": "bfloat16"}, "its bfloat16 weights are computed in another precision"),
    ],
)
def test_what_keeps_the_models_own_pass_is_said(changes, settings, reason):
    config = AutoConfig.for_model(**{**SIZES, "model_type": "llama", **changes}).to_dict()
    how = {"dtype": "float32", "quantization": None, **settings}
    assert find_packing_obstacle(config, computing_dtype=torch.float32, **how) == reason


def test_gradients_are_the_same_bit_for_bit_each_time():
    policy, rows = make_policy("llama"), make_rows(prompts=4, group=8, width=30)
    one, two = (differentiate(policy, *read_packed(policy, *rows)) for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


def attend_one_by_one(queries, keys, values, query_ends, key_ends, longest_query, longest_key, *, scale, **options):
    """Return what the kernel for sequences side by side does, by plain products."""
    assert query_ends is key_ends
    assert query_ends.dtype == torch.int32
    assert longest_query == longest_key == int(query_ends.diff().max())
    (back, ahead), outputs = options["window_size"], []
    assert ahead == 0
    assert options["enable_gqa"] == (queries.shape[1] > keys.shape[1])
    for start, end in itertools.pairwise(query_ends.tolist()):
        q, k, v = (part[start:end].transpose(0, 1) for part in (queries, keys, values))
        k, v = (part.repeat_interleave(len(q) // len(k), 0) for part in (k, v))
        distance = torch.arange(end - start)[:, None] - torch.arange(end - start)
        seen = (distance >= 0) & ((distance <= back) | (back < 0))
        weights = (q @ k.mT * scale).masked_fill(~seen, -torch.inf).softmax(-1)
        outputs.append((weights @ v).transpose(0, 1))
    return torch.cat(outputs)


@pytest.mark.parametrize("case", ["llama", "mistral with a window", "gemma3 with windows"])
def test_sequences_side_by_side_are_the_same_as_padded_ones(case, monkeypatch):
    monkeypatch.setattr("rlcredit.policy.packed_forward.has_varlen_attention", lambda *_: True)
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", attend_one_by_one)
    assert_same(make_policy(case), make_rows())


def test_gradients_of_prompts_may_be_summed_a_few_tokens_at_a_time(monkeypatch):
    policy, rows = make_policy("llama"), make_rows()
    whole = differentiate(policy, *read_packed(policy, *rows))
    monkeypatch.setattr("rlcredit.policy.packed_forward.MAX_COPY_BYTES", 2000)
    parts = differentiate(policy, *read_packed(policy, *rows))
    assert all(torch.equal(parts[name], gradient) for name, gradient in whole.items())


@pytest.mark.parametrize("case", ["llama", "qwen3", "gemma3 with windows"])
def test_the_graph_takes_the_bytes_that_are_forecast(case):
    policy, rows = make_policy(case), make_rows(prompts=4, group=4, width=64)
    frozen = {weight.untyped_storage().data_ptr() for weight in policy.parameters()}
    storages = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in frozen and tensor.is_floating_point():
            storages[storage.data_ptr()] = tensor, storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        _, layout = PackedForward(policy).read_rows(*rows)
    tokens = len(layout.ids)
    prompts = int((layout.copies[:, 0] < len(layout.sequences)).sum()) / 4
    size = PassSize(4, round(prompts), 16, round((tokens - 4 * prompts) / 16))
    cost = estimate_update_cost(policy.architecture, "float32", size, rank=4, is_packed=True)
    assert sum(number for _, number in storages.values()) == pytest.approx(tokens * cost.graph, rel=0.35)
