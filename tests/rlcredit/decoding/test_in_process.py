import pytest
import torch
from torch.testing import assert_close

from rlcredit.decoding import in_process
from rlcredit.decoding.in_process import InProcessEngine, count_fitting_rows
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.policy import Policy

FIELDS = ("completion_ids", "mask", "logprobs", "entropy", "truncated")


@pytest.fixture(scope="module")
def prompt_ids(policy, task):
    return policy.encode_questions([example.question for example in task.train_set[:4]])


@pytest.fixture(scope="module")
def samples(policy, prompt_ids):
    return InProcessEngine().sample(policy, prompt_ids, [0, 1, 2, 3], Sampling(completions=8), seed=0, step=0)


@pytest.mark.parametrize("decode_batch_size", [1, 5, 8, 13, 31])
def test_completions_do_not_depend_on_the_decode_batch_bit_for_bit(policy, prompt_ids, samples, decode_batch_size):
    engine = InProcessEngine(decode_batch_size)
    again = engine.sample(policy, prompt_ids, [0, 1, 2, 3], Sampling(completions=8), seed=0, step=0)
    for name in FIELDS:
        assert torch.equal(getattr(again, name), getattr(samples, name)), name


@pytest.mark.parametrize(("free_bytes", "expected"), [(float("inf"), 250), (1e9, 256), (20e6, 128), (7e6, 64), (0, 16)])
def test_a_batch_is_cut_into_equal_parts_that_memory_holds(policy, free_bytes, expected, monkeypatch):
    monkeypatch.setattr(in_process, "find_free_bytes", lambda device: free_bytes)
    # Keys and values of a row, 3 layers x 2 x 32 numbers of 4 bytes for each of 16 + 4 + 128 tokens: 114 kB.
    # Its logits, twice 384 x 20 bytes, and its share of reading 8 contexts: 17 kB. 20 MB hold 153 rows, 7 MB hold 53.
    rows = count_fitting_rows(policy, (8, 16), (250, 4))
    assert rows == expected


def test_completions_cut_for_memory_are_the_same_bit_for_bit(policy, prompt_ids, samples, monkeypatch):
    monkeypatch.setattr(in_process, "find_free_bytes", lambda device: 1e6)
    again = InProcessEngine().sample(policy, prompt_ids, [0, 1, 2, 3], Sampling(completions=8), seed=0, step=0)
    for name in FIELDS:
        assert torch.equal(getattr(again, name), getattr(samples, name)), name


def test_completions_do_not_depend_on_which_prompts_stand_beside_them(policy, prompt_ids, samples):
    order = [2, 0]
    again = InProcessEngine().sample(policy, prompt_ids[order], order, Sampling(completions=8), seed=0, step=0)
    rows = torch.cat([torch.arange(8 * p, 8 * p + 8) for p in order])
    width = again.mask.shape[1]
    for name in FIELDS[:-1]:
        assert torch.equal(getattr(again, name), getattr(samples, name)[rows, :width]), name


def test_fewer_completions_are_the_first_of_many(policy, prompt_ids, samples):
    again = InProcessEngine().sample(policy, prompt_ids, [0, 1, 2, 3], Sampling(completions=2), seed=0, step=0)
    width = again.mask.shape[1]
    assert torch.equal(again.completion_ids, samples.completion_ids.view(4, 8, -1)[:, :2, :width].flatten(0, 1))


def test_another_step_samples_other_completions(policy, prompt_ids, samples):
    other = InProcessEngine().sample(policy, prompt_ids, [0, 1, 2, 3], Sampling(completions=8), seed=0, step=1)
    assert other.completion_ids.shape != samples.completion_ids.shape or not torch.equal(
        other.completion_ids, samples.completion_ids
    )


def test_logprobs_and_entropy_are_those_of_the_sampled_distribution(policy, prompt_ids, samples):
    with torch.no_grad():
        scores = policy.score_prompts(prompt_ids.repeat_interleave(8, 0), samples.completion_ids, temperature=0.7)
    assert_close(samples.logprobs[samples.mask], scores.logprobs[samples.mask], atol=1e-4, rtol=1e-4)
    assert_close(samples.entropy[samples.mask], scores.entropy[samples.mask], atol=1e-4, rtol=1e-4)


def test_a_completion_ends_with_its_first_end_of_sequence(policy, samples):
    ends = torch.isin(samples.completion_ids, policy.stop_ids) & samples.mask
    assert (ends.sum(-1) == (~samples.truncated).int()).all()
    last = samples.mask.sum(-1) - 1
    assert ends[~samples.truncated, last[~samples.truncated]].all()


def test_a_cut_completion_counts_as_truncated(policy, prompt_ids):
    cut = InProcessEngine().sample(policy, prompt_ids, [0, 1, 2, 3], Sampling(2, max_tokens=4), seed=0, step=0)
    assert cut.truncated.all()
    assert cut.mask.all()
    assert cut.mask.shape == (8, 4)


@pytest.mark.parametrize("wrong", [{"top_p": 0.9}, {"top_k": 20}])
def test_a_truncated_sampler_is_refused_with_the_reason(wrong):
    with pytest.raises(ValueError, match="not the policy that is optimised"):
        Sampling(**wrong)


@pytest.mark.parametrize("wrong", [{"completions": 0}, {"max_tokens": 0}, {"temperature": 0.0}])
def test_meaningless_sampling_is_refused(wrong):
    with pytest.raises(ValueError, match="expected a number"):
        Sampling(**wrong)


def test_sampling_leaves_the_policy_in_the_mode_it_was(policy, prompt_ids):
    policy.lm.train()
    InProcessEngine().sample(policy, prompt_ids[:1], [0], Sampling(1, max_tokens=2), seed=0, step=0)
    assert policy.lm.training


@pytest.fixture
def taught(policy):
    """A policy whose adapter says something, until the test is over."""
    adapter = [weight for name, weight in policy.named_parameters() if "lora_B" in name]
    before = [weight.detach().clone() for weight in adapter]
    torch.manual_seed(0)
    for weight in adapter:
        weight.data.normal_(std=0.02)
    yield policy
    for weight, data in zip(adapter, before, strict=True):
        weight.data.copy_(data)


def test_a_merged_adapter_samples_the_same_policy(taught, prompt_ids, samples):
    sampling = Sampling(completions=8)
    apart, merged = (
        InProcessEngine(merge=merge, fused=False).sample(taught, prompt_ids, [0, 1, 2, 3], sampling, seed=0, step=0)
        for merge in (False, True)
    )
    assert apart.logprobs.shape != samples.logprobs.shape or not torch.equal(apart.logprobs, samples.logprobs)
    same = (apart.completion_ids == merged.completion_ids).all(-1)
    assert same.float().mean() > 0.9, "a draw at the edge of two tokens may fall to either side"
    assert_close(merged.logprobs[same], apart.logprobs[same], atol=1e-4, rtol=1e-4)
    assert not torch.equal(merged.logprobs[same], apart.logprobs[same]), "nothing was merged"


def test_merging_leaves_every_weight_as_it_was(taught):
    before = {name: weight.detach().clone() for name, weight in taught.named_parameters()}
    needed = [name for name, weight in taught.named_parameters() if weight.requires_grad]
    with pytest.raises(KeyError), taught.merge_adapter():
        raise KeyError
    assert all(torch.equal(weight, before[name]) for name, weight in taught.named_parameters())
    assert [name for name, weight in taught.named_parameters() if weight.requires_grad] == needed
    assert not any(getattr(module, "merged_adapters", []) for module in taught.modules())


def test_gradients_through_merged_weights_are_those_of_the_adapter(taught, prompt_ids, samples):
    adapter = [weight for weight in taught.parameters() if weight.requires_grad]

    def gradient():
        prompts = prompt_ids.repeat_interleave(len(samples.mask) // 4, 0)
        scores = taught.score_prompts(prompts, samples.completion_ids, 0.7)
        loss = scores.logprobs[samples.mask].mean()
        return torch.autograd.grad(loss, adapter)

    apart = gradient()
    with taught.merge_for_gradients():
        merged = gradient()
    assert any(not torch.equal(*pair) for pair in zip(apart, merged, strict=True)), "nothing was merged"
    for one, other in zip(apart, merged, strict=True):
        assert_close(other, one, atol=1e-6, rtol=1e-5)


def test_large_layers_keep_their_factors(taught):
    with taught.merge_adapter(largest=64 * 64):
        merged = {
            name.rpartition(".")[2] for name, each in taught.named_modules() if name and getattr(each, "merged", False)
        }
    assert merged == {"q_proj", "k_proj", "v_proj", "o_proj"}


def test_rounded_weights_are_not_merged():
    policy = Policy(dtype="bfloat16")
    policy.load()
    with (
        pytest.raises(ValueError, match=r"float32 weights only, got torch.bfloat16. Sample without merging"),
        policy.merge_adapter(),
    ):
        pass


def test_threads_are_given_back_and_are_the_runs_own_where_none_are_named(policy, prompt_ids, monkeypatch):
    seen = []
    monkeypatch.setattr(torch, "set_num_threads", lambda number: seen.append(number))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    for threads in (None, 1):
        InProcessEngine(threads=threads).sample(policy, prompt_ids, [0], Sampling(1, 1), seed=0, step=0)
    assert seen == [7, 7, 1, 7]


@pytest.mark.parametrize("decode_batch_size", [None, 5])
@pytest.mark.parametrize("fused", [True, False])
def test_hidden_states_are_kept_if_asked_for(policy, prompt_ids, samples, fused, decode_batch_size):
    engine = InProcessEngine(decode_batch_size, fused=fused)
    sampling = Sampling(completions=8)
    kept = engine.sample(policy, prompt_ids, [0, 1, 2, 3], sampling, seed=0, step=0, keeps_hidden=True)
    assert samples.hidden is None
    assert torch.equal(kept.completion_ids, samples.completion_ids)
    with torch.no_grad(), policy.evaluation_mode():
        context = policy.read_prompts(prompt_ids.repeat_interleave(8, 0))
        expected = policy.predicting_states(context, kept.completion_ids)
    assert_close(kept.hidden[kept.mask], expected[kept.mask], rtol=1e-4, atol=1e-4)
    assert not kept.hidden[~kept.mask].any()
