"""Filters: by hand, against transformers' own, and in the engine."""

import pytest
import torch
from torch.testing import assert_close
from transformers.generation.logits_process import TopKLogitsWarper, TopPLogitsWarper

from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.noise import inverse_cdf, sampling_uniforms
from rlcredit.decoding.token_filters import TokenFilter


@pytest.fixture
def logits():
    return 2 * torch.randn(200, 50, generator=torch.Generator().manual_seed(0))


def by_hand(kept, probabilities=(0.1, 0.4, 0.2, 0.3)):
    return kept(torch.tensor([probabilities]))[0].tolist()


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (TokenFilter(top_k=1), [0, 0.4, 0, 0]),
        (TokenFilter(top_k=3), [0, 0.4, 0.2, 0.3]),
        (TokenFilter(top_k=9), [0.1, 0.4, 0.2, 0.3]),
        (TokenFilter(top_p=0.05), [0, 0.4, 0, 0]),  # the likeliest stays
        (TokenFilter(top_p=0.39), [0, 0.4, 0, 0]),
        (TokenFilter(top_p=0.41), [0, 0.4, 0, 0.3]),  # 0.4 is not enough
        (TokenFilter(top_p=0.75), [0, 0.4, 0.2, 0.3]),
        (TokenFilter(top_p=1.0), [0.1, 0.4, 0.2, 0.3]),
        (TokenFilter(greedy=True), [0, 0.4, 0, 0]),
        (TokenFilter(top_k=2, top_p=0.5), [0, 0.4, 0, 0]),  # 0.4 of 0.7 is more than half
        (TokenFilter(top_p=0.5), [0, 0.4, 0, 0.3]),  # 0.4 of 1 is not
    ],
)
def test_what_is_kept_by_hand(kept, expected):
    assert by_hand(kept) == pytest.approx(expected)


def test_of_equals_top_p_and_greedy_keep_the_first_and_top_k_all():
    equal = (0.25, 0.25, 0.25, 0.25)
    assert by_hand(TokenFilter(greedy=True), equal) == [0.25, 0, 0, 0]
    assert by_hand(TokenFilter(top_p=0.3), equal) == [0.25, 0.25, 0, 0]
    assert by_hand(TokenFilter(top_k=1), equal) == [0.25, 0.25, 0.25, 0.25]  # as transformers


@pytest.mark.parametrize("k", [1, 5, 50])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 0.999])
def test_top_k_then_top_p_draw_from_the_distribution_of_transformers(logits, k, p):
    warped = TopPLogitsWarper(p)(None, TopKLogitsWarper(k)(None, logits)).softmax(-1)
    kept = TokenFilter(top_k=k, top_p=p)(logits.softmax(-1))
    assert torch.equal(kept > 0, warped > 0)
    assert_close(kept / kept.sum(-1, keepdim=True), warped)


@pytest.mark.parametrize("p", [0.2, 0.7, 0.95])
def test_top_p_is_that_of_transformers(logits, p):
    warped = TopPLogitsWarper(p)(None, logits).softmax(-1)
    kept = TokenFilter(top_p=p)(logits.softmax(-1))
    assert_close(kept / kept.sum(-1, keepdim=True), warped)


def test_a_token_left_out_is_never_drawn_and_the_others_as_often_as_they_should_be():
    kept = TokenFilter(top_k=2)(torch.tensor([[0.1, 0.6, 0.3]])).repeat(10_000, 1)
    tokens = inverse_cdf(kept, (torch.arange(10_000) + 0.5) / 10_000)
    assert torch.bincount(tokens, minlength=3).tolist() == [0, 6667, 3333]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"top_k": 0}, "top_k must be at least 1"),
        ({"top_p": 0.0}, "top_p must be above 0"),
        ({"top_p": 1.5}, "at most 1"),
        ({"greedy": True, "top_k": 5}, "greedy keeps one token"),
    ],
)
def test_what_keeps_nothing_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        TokenFilter(**wrong)


def test_no_argument_is_no_filter():
    assert TokenFilter().keeps_all


@pytest.fixture(scope="module")
def asked(policy, task):
    prompt_ids = policy.encode_questions([example.question for example in task.train_set[:4]])
    return (
        prompt_ids,
        sampling_uniforms(0, 0, [0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4, 24),
        torch.arange(4).repeat_interleave(2),
    )


def test_a_filtered_engine_reports_the_policy_as_it_is(policy, asked):
    prompt_ids, noise, of = asked
    samples = InProcessEngine().decode(policy, prompt_ids, noise, of, 1.0, token_filter=TokenFilter(top_k=3, top_p=0.9))
    with torch.no_grad():
        scores = policy.score_prompts(prompt_ids[of], samples.completion_ids)
    assert_close(samples.logprobs[samples.mask], scores.logprobs[samples.mask], atol=1e-4, rtol=1e-4)
    assert_close(samples.entropy[samples.mask], scores.entropy[samples.mask], atol=1e-4, rtol=1e-4)


def test_a_greedy_engine_draws_the_likeliest_token_whatever_the_noise(policy, asked):
    prompt_ids, noise, of = asked
    pair = (
        InProcessEngine().decode(policy, prompt_ids, each, of, 1.0, token_filter=TokenFilter(greedy=True))
        for each in (noise, 1 - noise)
    )
    first, second = pair
    assert torch.equal(first.completion_ids, second.completion_ids)
    with torch.no_grad(), policy.evaluation_mode():
        ids = torch.cat([prompt_ids[of], first.completion_ids], -1)
        mask = torch.cat([policy.prompt_mask(prompt_ids)[of], torch.ones_like(first.mask)], -1)
        hidden, _ = policy.hidden_states(ids, mask)
        likeliest = (hidden @ policy.head.T).argmax(-1)[:, prompt_ids.shape[1] - 1 : -1]
    assert torch.equal(first.completion_ids[first.mask], likeliest[first.mask])


def test_without_a_filter_nothing_changes(policy, asked):
    prompt_ids, noise, of = asked
    plain = InProcessEngine().decode(policy, prompt_ids, noise, of, 0.7)
    kept = InProcessEngine().decode(policy, prompt_ids, noise, of, 0.7, token_filter=TokenFilter(top_p=1.0))
    assert torch.equal(plain.completion_ids, kept.completion_ids)
    assert torch.equal(plain.logprobs, kept.logprobs)
