import pytest
import torch
from peft import PeftModel
from small_policies import load_with_random_adapter
from torch.testing import assert_close
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.export import MergedWeights, export_policy
from rlcredit.policy.policy import Policy


def sampled(policy):
    questions = ["State the final answer to the following arithmetic problem: 4 + 3 =", "7 - 2"]
    prompt_ids = policy.encode_questions(questions)
    return prompt_ids, InProcessEngine().sample(policy, prompt_ids, [0, 1], Sampling(4, 32), seed=0, step=0)


def log_probabilities(model, policy, prompt_ids, samples):
    """Score completions with a model of transformers alone."""
    prompts = prompt_ids.repeat_interleave(4, 0)
    ids = torch.cat([prompts, samples.completion_ids], 1)
    mask = torch.cat([policy.prompt_mask(prompts), torch.ones_like(samples.completion_ids, dtype=torch.bool)], 1)
    with torch.no_grad():
        logits = model(
            input_ids=ids.clamp(min=0), attention_mask=mask.long(), position_ids=(mask.cumsum(-1) - 1).clamp(min=0)
        ).logits
    scores = (logits[:, prompts.shape[1] - 1 : -1].float() / 0.7).log_softmax(-1)
    return scores.gather(-1, samples.completion_ids[..., None])[..., 0][samples.mask]


def test_plain_transformers_computes_the_log_probabilities_that_were_sampled(policy, tmp_path):
    prompt_ids, samples = sampled(policy)
    export_policy(policy, tmp_path / "plain")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "plain").eval()
    actual = log_probabilities(model, policy, prompt_ids, samples)
    assert_close(actual, samples.logprobs[samples.mask], rtol=0, atol=3e-5)
    with policy.disable_adapter():  # and the adapter matters
        base = log_probabilities(policy.lm, policy, prompt_ids, samples)
    assert (base - actual).abs().max() > 0.1


def test_peft_computes_them_from_the_adapter_alone(policy, tmp_path):
    prompt_ids, samples = sampled(policy)
    policy.save_adapter(tmp_path)
    base = AutoModelForCausalLM.from_pretrained(policy.location)
    model = PeftModel.from_pretrained(base, tmp_path).eval()
    actual = log_probabilities(model, policy, prompt_ids, samples)
    assert_close(actual, samples.logprobs[samples.mask], rtol=0, atol=3e-5)


def test_a_4bit_base_is_written_as_the_weights_that_acted(tmp_path):
    policy = load_with_random_adapter(Policy(quantization="4bit"))
    prompt_ids, samples = sampled(policy)
    export_policy(policy, tmp_path / "plain")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "plain").eval()
    assert model.dtype == torch.float32
    assert not hasattr(model.config, "quantization_config")
    actual = log_probabilities(model, policy, prompt_ids, samples)
    assert_close(actual, samples.logprobs[samples.mask], rtol=0, atol=3e-5)


def test_a_bfloat16_base_is_written_in_float32_and_nothing_is_rounded(tmp_path):
    policy = load_with_random_adapter(Policy(dtype="bfloat16"))
    export_policy(policy, tmp_path / "plain")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "plain")
    layer = policy.lm.get_base_model().model.layers[0].mlp.up_proj
    change = layer.get_delta_weight("default")
    assert change.dtype == torch.float32
    assert torch.equal(model.model.layers[0].mlp.up_proj.weight, layer.get_base_layer().weight.float() + change)
    assert torch.equal(model.model.norm.weight, policy.lm.get_base_model().model.norm.weight.float())


def test_what_rounding_loses_is_a_share_of_the_change(policy, tmp_path):
    merged = MergedWeights(policy)
    assert merged.rounding_error_share(torch.float32) == 0
    errors = changes = 0.0
    for layer in merged.adapted.values():
        base, change = layer.get_base_layer().weight, layer.get_delta_weight("default").detach()
        errors += float(((base + change).bfloat16().float() - (base + change)).square().sum())
        changes += float(change.square().sum())
    assert merged.rounding_error_share(torch.bfloat16) == pytest.approx((errors / changes) ** 0.5, rel=1e-4)
    export_policy(policy, tmp_path / "plain", dtype="bfloat16")
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "plain").dtype == torch.bfloat16


def test_a_fresh_adapter_loses_nothing_and_changes_nothing():
    policy = Policy()
    policy.load()
    assert MergedWeights(policy).rounding_error_share(torch.bfloat16) == 0
    weights = MergedWeights(policy).merge_all_weights()
    theirs = AutoModelForCausalLM.from_pretrained(policy.location).state_dict()
    assert weights.keys() == theirs.keys()
    assert all(torch.equal(weights[name], theirs[name]) for name in theirs)


def test_the_policy_is_left_as_it_was(policy, tmp_path):
    before = {name: weight.clone() for name, weight in policy.lm.state_dict().items()}
    export_policy(policy, tmp_path / "plain")
    after = policy.lm.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(("lora_" in name) == weight.requires_grad for name, weight in policy.lm.named_parameters())


def test_tokenizer_settings_and_card_are_beside_the_weights(policy, tmp_path):
    drawing = {"do_sample": True, "temperature": 0.7, "top_p": 1.0, "top_k": 0}
    export_policy(policy, tmp_path / "mine", generation=drawing, facts={"steps": "4"})
    theirs = AutoTokenizer.from_pretrained(tmp_path / "mine")
    chat = [{"role": "user", "content": "4 + 3"}]
    assert theirs.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) == (
        "<|im_start|>user\n4 + 3<|im_end|>\n<|im_start|>assistant\n"
    )
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "mine")
    settings = model.generation_config
    assert (settings.do_sample, settings.temperature, settings.top_k, settings.eos_token_id) == (True, 0.7, 0, 2)
    card = (tmp_path / "mine" / "README.md").read_text(encoding="utf-8")
    assert "# mine\n\ntiny with a LoRA adapter of rank 16 added into its weights, float32" in card
    assert "| steps | 4 |" in card
    again = Policy(str(tmp_path / "mine"))
    again.load()
    assert torch.equal(again.encode_questions(["4 + 3"]), policy.encode_questions(["4 + 3"]))
