import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_policies import load_with_random_adapter, save_as_policy
from torch.testing import assert_close
from transformers import AutoConfig, AutoModelForCausalLM

import rlcredit
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.adapters import install_adapter, read_adapter_settings
from rlcredit.policy.model_loading import MissingWeightsError
from rlcredit.policy.policy import LoRA, Policy
from rlcredit.policy.policy_sizes import find_policy_sizes
from rlcredit.preflight.policy import refuse_unloadable_policy

TINY = Path(rlcredit.__file__).parent / "tiny"


def test_the_embedded_policy_is_small_and_safe():
    files = {path.name: path.stat().st_size for path in TINY.iterdir()}
    assert sum(files.values()) < 8e6
    assert {"model.safetensors", "tokenizer.json", "config.json", "README.md"} <= set(files)
    assert json.loads((TINY / "config.json").read_text())["model_type"] == "qwen3"


@pytest.mark.parametrize("text", ["naïve ☃ 漢字 \U0001f600", "a\tb\n\nc", "don't – “quote”", "12345 x 67"])
def test_any_text_can_be_encoded_and_digits_stand_alone(policy, text):
    ids = policy.tokenizer.encode(text, add_special_tokens=False)
    assert policy.tokenizer.decode(ids) == text
    pieces = [policy.tokenizer.decode([i]) for i in ids]
    assert all(sum(c.isdigit() for c in piece) <= 1 for piece in pieces)


def test_pieces_join_to_the_text_even_where_a_character_spans_tokens(policy):
    text = "let me think: 漢 4+3=7.<|im_end|>"
    ids = torch.tensor([policy.tokenizer.encode(text, add_special_tokens=False)])
    pieces = policy.decode_pieces(ids, torch.ones_like(ids, dtype=torch.bool))[0]
    assert len(pieces) == ids.shape[1]
    assert "".join(pieces) == "let me think: 漢 4+3=7."


def test_texts_are_the_pieces_joined_also_where_a_character_is_cut_off(policy):
    written = ["let me think: 漢 4+3=7.<|im_end|>", "漢字 4", "", "  two spaces , and 1 .", "漢"]
    rows = [torch.tensor(policy.tokenizer.encode(text, add_special_tokens=False)) for text in written]
    rows[-1] = rows[-1][:-1]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    mask = torch.arange(ids.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
    assert policy.decode_texts(ids, mask) == ["".join(pieces) for pieces in policy.decode_pieces(ids, mask)]


def test_turns_and_what_stands_between_them_are_decoded_apart(policy):
    encode = policy.tokenizer.encode
    han = encode("漢", add_special_tokens=False)
    runs = [[*encode("left 漢\n", add_special_tokens=False), *han[:-1]], [*han[-1:], *encode("wall\n")], encode("up")]
    ids, width = torch.tensor([[*runs[0], *runs[1], *runs[2], 0, 0]]), sum(map(len, runs))
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[:, width:] = mask[:, len(runs[0]) : width - len(runs[2])] = False
    [pieces] = policy.decode_pieces(ids, mask)
    assert len(pieces) == width
    assert "".join(pieces[: len(runs[0])]) == "left 漢\n"
    assert "".join(pieces[len(runs[0]) :]).endswith("wall\nup")
    assert policy.decode_texts(ids, mask) == ["left 漢\nup"]
    assert policy.decode_texts(ids.repeat(2, 1), torch.cat([mask, mask & False])) == ["left 漢\nup", ""]


def test_a_pad_token_at_the_start_of_a_prompt_is_read(tmp_path):
    """As of GPT-2, where one token begins a text, ends it and pads."""
    shutil.copytree(Policy().location, tmp_path / "one_token")
    template = tmp_path / "one_token" / "chat_template.jinja"
    template.write_text("<|endoftext|>" + template.read_text())
    policy = load_with_random_adapter(Policy(str(tmp_path / "one_token")))
    prompt_ids = policy.encode_questions(["4 + 3 =", "What is 13 - 4 + 87 - 20 + 5?"])
    samples = InProcessEngine().sample(policy, prompt_ids, [0, 1], Sampling(1, 8), seed=0, step=0)
    with torch.no_grad():
        trained = policy.score_prompts(prompt_ids, samples.completion_ids, temperature=0.7).logprobs
    for row, prompt in enumerate(prompt_ids):
        tokens = prompt[policy.prompt_mask(prompt)]
        assert tokens[0] == policy.tokenizer.pad_token_id
        whole = torch.cat([tokens, samples.completion_ids[row]])
        with torch.no_grad():
            logits = policy.lm(input_ids=whole[None]).logits[0, -9:-1] / 0.7
        alone = logits.log_softmax(-1).gather(-1, samples.completion_ids[row, :, None])[:, 0]
        assert_close(samples.logprobs[row], alone, rtol=0, atol=3e-5)
        assert_close(trained[row], alone, rtol=0, atol=3e-5)


def scored(policy, task, shift=0):
    """Sampler and trainer on the same tokens, the targets shifted by ``shift``."""
    prompt_ids = policy.encode_questions([example.question for example in task.train_set[:2]])
    samples = InProcessEngine().sample(policy, prompt_ids, [0, 1], Sampling(8), seed=0, step=0)
    targets = samples.completion_ids.roll(shift, 1)
    with torch.no_grad():
        scores = policy.score_prompts(prompt_ids.repeat_interleave(8, 0), targets, temperature=0.7)
    return (scores.logprobs - samples.logprobs)[samples.mask]


def test_trainer_and_sampler_are_aligned(policy, task):
    log_ratio = scored(policy, task)
    assert log_ratio.exp().min() > 0.999
    assert log_ratio.exp().max() < 1.001
    assert (log_ratio.expm1() - log_ratio).mean() < 1e-5


def test_targets_shifted_by_one_fail_loudly(policy, task):
    log_ratio = scored(policy, task, shift=1)
    assert log_ratio.exp().min() < 0.01
    assert (log_ratio.expm1() - log_ratio).mean() > 1


def test_the_adapter_can_be_switched_off(policy, task):
    prompt_ids = policy.encode_questions([task.train_set[0].question])
    completion = torch.tensor([policy.tokenizer.encode("let me think: ")])
    with torch.no_grad():
        on = policy.score_prompts(prompt_ids, completion).logprobs
        with policy.disable_adapter():
            off = policy.score_prompts(prompt_ids, completion).logprobs
        fresh = Policy()
        fresh.load(seed=5)
        base = fresh.score_prompts(prompt_ids, completion).logprobs
    assert not torch.allclose(on, off)
    assert_close(off, base)


def test_a_seed_makes_the_adapter_whatever_the_global_generator_did():
    def first_weights(disturbance):
        torch.manual_seed(disturbance)
        loaded = Policy()
        loaded.load(seed=3)
        return {name: weight for name, weight in loaded.named_parameters() if weight.requires_grad}

    one, two = first_weights(0), first_weights(99)
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_saved_adapter_loads_in_peft(policy, task, tmp_path):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    policy.save_adapter(tmp_path)
    theirs = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(TINY), tmp_path).eval()
    ids = policy.encode_questions([task.train_set[0].question])
    ids = ids[policy.prompt_mask(ids)][None]
    with torch.no_grad(), policy.evaluation_mode():
        assert_close(theirs(input_ids=ids).logits[:, -1], policy.lm(input_ids=ids).logits[:, -1])


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`")
@pytest.mark.parametrize("targets", [["q_proj", "lm_head"], ".*(q_proj|embed_tokens)"])
def test_an_adapter_on_an_embedding_is_not_loaded(targets):
    with pytest.raises(ValueError, match=r"the adapter is on an embedding .* where it would not act"):
        Policy(lora=LoRA(4, 8, targets)).load()


@pytest.mark.parametrize("size", [None, 32])
def test_a_model_that_lacks_a_weight_is_not_loaded(size, tmp_path):
    """Transformers would draw it at random, and say so in a table."""
    folder = shutil.copytree(TINY, tmp_path / "odd")
    weights = load_file(folder / "model.safetensors")
    norm = weights.pop("model.norm.weight")
    weights |= {} if size is None else {"model.norm.weight": norm[:size].clone()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(MissingWeightsError, match=r"odd: model\.norm\.weight is missing, or of another size"):
        Policy(str(folder)).load()


def test_tokens_that_a_model_cannot_draw_end_nothing():
    policy = Policy()
    policy.load()
    policy.lm.generation_config.eos_token_id = [2, 384]
    assert policy.stop_ids.tolist() == [2]
    policy.lm.generation_config.eos_token_id = policy.tokenizer.eos_token = None
    assert policy.stop_ids.dtype == torch.long
    assert not len(policy.stop_ids)


@pytest.mark.parametrize("quantization", ["4bit", "8bit"])
def test_every_adapter_weight_has_a_gradient_after_a_quantized_rollout(task, quantization):
    policy = Policy(quantization=quantization)
    policy.load()
    prompt_ids = policy.encode_questions([task.train_set[0].question])
    samples = InProcessEngine().sample(policy, prompt_ids, [0], Sampling(2, max_tokens=8), seed=0, step=0)
    adapter = {name: weight for name, weight in policy.named_parameters() if weight.requires_grad}
    with torch.no_grad():  # B starts at zero and would hide the gradient of A
        for name, weight in adapter.items():
            weight.add_(0.01 * torch.ones_like(weight) if "lora_B" in name else 0)
    policy.score_prompts(prompt_ids.repeat_interleave(2, 0), samples.completion_ids).logprobs.sum().backward()
    assert len(adapter) == 2 * 7 * 3
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in adapter.values())


def test_a_model_that_scales_its_logits_is_refused(policy, monkeypatch):
    head = policy.lm.get_output_embeddings()
    monkeypatch.setattr(head, "forward", lambda hidden: 30 * torch.tanh(hidden @ head.weight.T / 30) + 1)
    with pytest.raises(ValueError, match="cap, scale or bias"):
        policy._check_head()


def test_a_rank_of_nothing_is_refused():
    with pytest.raises(ValueError, match="rank >= 1, got 0"):
        LoRA(rank=0)


def test_a_copied_adapter_acts_as_the_one_that_was_copied(task):
    policy = load_with_random_adapter(Policy())
    ids = policy.encode_questions([question.question for question in task.train_set[:2]])
    completion_ids = torch.randint(3, 100, (2, 8), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = policy.score_prompts(ids, completion_ids).logprobs
        copied = policy.copy_adapter()
        install_adapter(policy, None)
        assert not torch.equal(policy.score_prompts(ids, completion_ids).logprobs, expected)
        with policy.use_adapter(list(copied.values())):
            assert torch.equal(policy.score_prompts(ids, completion_ids).logprobs, expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("targets", ["all-linear", ".*attn.*_proj"])
@pytest.mark.parametrize("dense", [[], [0]])
def test_stacked_experts_and_routers_get_no_adapter(dense, targets, dtype, tmp_path):
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_hidden_layers": 3}
    sizes = {"vocab_size": 384, "hidden_size": 64, "intermediate_size": 96, "tie_word_embeddings": True}
    experts = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "mlp_only_layers": dense}
    ends = {"eos_token_id": 2, "pad_token_id": 0}
    config = AutoConfig.for_model("qwen3_moe", **sizes, **heads, **experts, **ends)
    folder = Path(save_as_policy(AutoModelForCausalLM.from_config(config), tmp_path / "experts").path)
    policy = Policy(str(folder), LoRA(4, 8, targets), dtype)
    refuse_unloadable_policy(policy)
    policy.load()
    trained = [weight for weight in policy.parameters() if weight.requires_grad]
    # q 64 x 64, k and v 64 x 32, o 64 x 64, in three layers
    assert sum(weight.numel() for weight in trained) == 3 * 4 * (128 + 96 + 96 + 128)
    prompts, completions = torch.randint(3, 300, (2, 16)), torch.randint(3, 300, (2, 8))
    with policy.merge_for_gradients():
        policy.score_prompts(prompts, completions).logprobs.sum().backward()
    assert all(weight.grad is not None for weight in trained)
    known = find_policy_sizes(str(folder))
    assert known.architecture.experts == 8
    assert known.parameters == sum(weight.numel() for weight in policy.parameters()) - 3 * 4 * 448
    if dense:  # PEFT would adapt the experts of the other layers
        with pytest.raises(ValueError, match=r"'.*_proj' names model.layers.0.mlp.gate_proj. PEFT takes that name for"):
            refuse_unloadable_policy(Policy(str(folder), LoRA(4, 8, ".*_proj"), dtype))
    policy.save_adapter(tmp_path / "adapter")
    assert read_adapter_settings(tmp_path / "adapter")[0]["rank"] == 4
