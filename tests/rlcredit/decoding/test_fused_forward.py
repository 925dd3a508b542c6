"""The forward pass of few operations is that of the model, whatever the model has of its own."""

import copy

import pytest
import torch
from small_policies import save_as_policy
from torch.testing import assert_close
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, Qwen2Config, Qwen3Config

from rlcredit.base import messages
from rlcredit.decoding.fused_forward import FusedForward
from rlcredit.decoding.in_process import InProcessEngine, has_matching_fused_forward
from rlcredit.decoding.sampling import Sampling
from rlcredit.decoding.transformers_forward import TransformersForward
from rlcredit.policy.policy import LoRA, Policy

SMALL = {"vocab_size": 384, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "eos_token_id": 2}
SMALL |= {"num_attention_heads": 4, "pad_token_id": 0, "max_position_embeddings": 256}
MODELS = {
    "llama, biases everywhere": LlamaConfig(**SMALL, num_key_value_heads=4, attention_bias=True, mlp_bias=True),
    "llama, one head of keys": LlamaConfig(**SMALL, num_key_value_heads=1, tie_word_embeddings=True),
    "llama, stretched": LlamaConfig(
        **SMALL,
        num_key_value_heads=2,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    ),
    "qwen2": Qwen2Config(**SMALL, num_key_value_heads=2),
    "qwen3, wide heads": Qwen3Config(**SMALL, num_key_value_heads=2, head_dim=16, tie_word_embeddings=False),
}
UNKNOWN = {
    "its architecture is gpt2": GPT2Config(
        vocab_size=384, n_embd=32, n_layer=1, n_head=2, n_positions=256, eos_token_id=2, bos_token_id=2
    ),
    "attention slides over a window": Qwen2Config(
        **SMALL, num_key_value_heads=2, use_sliding_window=True, sliding_window=16, max_window_layers=0
    ),
    "its activation is gelu": LlamaConfig(**SMALL, num_key_value_heads=2, hidden_act="gelu"),
}


def random(config, folder, **kwargs):
    """Return a policy of random weights, whose adapter says something."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    for weight in model.parameters():
        weight.data += 0.1 * torch.randn_like(weight)
    save_as_policy(model, folder)
    policy = Policy(str(folder), **kwargs)
    policy.load()
    for name, weight in policy.named_parameters():
        if "lora_B" in name:
            weight.data.normal_(std=0.1)
    return policy


def both(policy, decode_batch_size=None):
    """Answer three prompts through the model's own forward, and through the fused one."""
    prompt_ids = policy.encode_questions(["1 + 2", "What is 13 - 4 + 87 - 20?", "3"])
    return (
        InProcessEngine(decode_batch_size, fused=fused).sample(
            policy, prompt_ids, [0, 1, 2], Sampling(4, max_tokens=24), seed=0, step=0
        )
        for fused in (False, True)
    )


def told(capsys):
    return capsys.readouterr().err


@pytest.mark.parametrize("name", MODELS)
def test_both_forwards_draw_the_same_tokens_with_the_same_certainty(name, tmp_path, capsys):
    policy = random(MODELS[name], tmp_path)
    with torch.no_grad():
        assert has_matching_fused_forward(policy)
    expected, found = both(policy)
    assert torch.equal(expected.completion_ids, found.completion_ids)
    for field in ("logprobs", "entropy", "sum_pi_squared"):
        assert_close(getattr(found, field), getattr(expected, field), atol=2e-5, rtol=1e-5)
    assert "decoded by its own" not in told(capsys)


def test_layers_without_an_adapter_stay_as_they_are(tmp_path):
    policy = random(MODELS["qwen2"], tmp_path, lora=LoRA(4, targets=["v_proj", "up_proj"]))
    expected, found = both(policy)
    assert torch.equal(expected.completion_ids, found.completion_ids)
    assert_close(found.logprobs, expected.logprobs, atol=2e-5, rtol=1e-5)


def test_in_fewer_bits_the_weights_are_not_merged_and_the_policy_is_the_same(tmp_path):
    policy = random(MODELS["qwen3, wide heads"], tmp_path, dtype="bfloat16", lora=LoRA(4, targets="all-linear"))
    with torch.no_grad():
        assert has_matching_fused_forward(policy)
    before = {name: weight.clone() for name, weight in policy.named_parameters()}
    expected, found = both(policy)
    same = (expected.completion_ids == found.completion_ids).cumprod(-1).bool() & expected.mask
    assert same.float().mean() > 0.1
    assert (found.logprobs - expected.logprobs)[same].abs().mean() < 0.05
    assert all(torch.equal(weight, before[name]) for name, weight in policy.named_parameters())


@pytest.mark.parametrize("autocast", [True, False])
@pytest.mark.parametrize("name", ["llama, biases everywhere", "qwen3, wide heads"])
def test_fewer_bits_are_as_near_to_float32_as_the_models_own(name, autocast, tmp_path):
    policy = random(MODELS[name], tmp_path, dtype="bfloat16", lora=LoRA(4, targets=["q_proj", "o_proj", "up_proj"]))
    exact = copy.deepcopy(policy)
    exact.lm.float()
    ids = torch.randint(3, 380, (8, 24), generator=torch.Generator().manual_seed(0))

    def read_states(reader):
        states = [reader.read_contexts(ids[:, :16], torch.arange(8), 8)]
        return torch.cat(states + [reader.append_tokens(tokens) for tokens in ids[:, 16:].T]).float()

    with torch.no_grad():
        expected = read_states(FusedForward(exact))
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            errors = [(read_states(kind(policy)) - expected).norm() for kind in (FusedForward, TransformersForward)]
    assert 0 < errors[0] < 1.1 * errors[1] < 0.05 * expected.norm()


@pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to False")  # which PEFT then sets
@pytest.mark.parametrize("reason", UNKNOWN)
def test_other_models_are_decoded_by_their_own_forward_and_one_line_says_so(reason, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(messages, "_told", set())
    expected, found = both(random(UNKNOWN[reason], tmp_path, lora=LoRA(2)))
    assert torch.equal(expected.logprobs, found.logprobs)
    assert told(capsys).count(f"its own forward pass, at a fraction of the speed: {reason}.") == 1


def test_a_model_that_is_not_what_its_configuration_says_is_found_out(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(messages, "_told", set())
    policy = random(MODELS["qwen2"], tmp_path)
    policy.lm.get_base_model().model.layers[1].self_attn.scaling *= 1.5
    forward = policy.lm.get_base_model().model.layers[0].mlp.forward
    policy.lm.get_base_model().model.layers[0].mlp.forward = lambda x: 1.1 * forward(x)
    expected, found = both(policy)
    assert torch.equal(expected.logprobs, found.logprobs)
    assert "what the fused forward computes differs from the model's own." in told(capsys)


def test_the_adapter_is_read_anew_after_every_change(tmp_path):
    policy = random(MODELS["qwen2"], tmp_path)
    engine = InProcessEngine()
    ask = (policy, policy.encode_questions(["1 + 2"]), [0], Sampling(4, max_tokens=8))
    before = engine.sample(*ask, seed=0, step=0)
    for name, weight in policy.named_parameters():
        if "lora_B" in name:
            weight.data.mul_(-1)
    assert not torch.equal(engine.sample(*ask, seed=0, step=0).logprobs, before.logprobs)
