import math

import pytest
import torch
from torch.testing import assert_close

from rlcredit.formulas.uncertainty import logprobs_and_entropy, scores_from_hidden


def reference(hidden, weight, targets, temperature):
    """The definitions, written out in float64."""
    log_p = ((hidden @ weight.T) / temperature).log_softmax(-1)
    return log_p.gather(1, targets[:, None])[:, 0], -(log_p.exp() * log_p).sum(-1), log_p.exp().square().sum(-1)


def test_entropy_of_a_point_mass_over_a_uniform_tail():
    # Nine tenths of the mass spread over 1000 tokens, one tenth on one: 0.469 + 0.9 log2(1000) = 9.44 bits.
    p = torch.cat([torch.full((1000,), 0.9 / 1000), torch.tensor([0.1])])
    _, entropy = logprobs_and_entropy(p.log(), torch.tensor(0))
    assert entropy.item() / math.log(2) == pytest.approx(9.438, abs=1e-3)


def test_a_token_excluded_by_the_model_has_no_share_in_the_entropy():
    logprob, entropy = logprobs_and_entropy(torch.tensor([0.0, 0.0, -math.inf]), torch.tensor(1))
    assert_close(entropy, torch.tensor(math.log(2)))
    assert_close(logprob, -torch.tensor(math.log(2)))


@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
@pytest.mark.parametrize("temperature", [0.7, 1.0])
@pytest.mark.parametrize("kept", [0, 2**20])
def test_chunked_head_and_its_gradients_equal_float64_autograd(chunk, temperature, kept, monkeypatch):
    monkeypatch.setattr("rlcredit.formulas.uncertainty.MAX_SAVED_BYTES", kept)
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(7, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(11, 5, generator=generator, dtype=torch.float64)
    targets = torch.randint(11, (7,), generator=generator)
    upstream = torch.randn(2, 7, generator=generator, dtype=torch.float64)

    expected = reference(hidden, weight, targets, temperature)
    expected_gradients = torch.autograd.grad(sum((u * e).sum() for u, e in zip(upstream, expected)), hidden)
    leaf = hidden.detach().float().requires_grad_()
    actual = scores_from_hidden(leaf, weight.float(), targets, temperature, chunk)
    actual_gradients = torch.autograd.grad(sum((u.float() * a).sum() for u, a in zip(upstream, actual)), leaf)

    for got, want in zip((*actual, *actual_gradients), (*expected, *expected_gradients)):
        assert_close(got, want.float(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("gap", [5.0, 10.0, 14.0, 40.0])
def test_nearly_certain_tokens_keep_their_surprisal_and_entropy(gap):
    weight = torch.tensor([[20.0 + gap], [20.0], [20.0]])
    hidden, targets = torch.ones(3, 1), torch.tensor([0, 1, 2])
    expected = reference(hidden.double(), weight.double(), targets, 1.0)
    found = scores_from_hidden(hidden, weight, targets)
    assert_close(found[0].double(), expected[0], atol=1.5e-7, rtol=1e-6)
    assert_close(found[1].double(), expected[1], atol=1.5e-7, rtol=1e-6)
    assert (found[1] >= 0).all()


@pytest.mark.parametrize("kept", [0, 2**20])
def test_without_the_gradient_of_entropy_the_rest_is_the_same(kept, monkeypatch):
    monkeypatch.setattr("rlcredit.formulas.uncertainty.MAX_SAVED_BYTES", kept)
    hidden, weight, targets = torch.randn(4, 3, requires_grad=True), torch.randn(6, 3), torch.tensor([0, 1, 2, 3])
    (logprobs, *facts), (plain, *plain_facts) = (
        scores_from_hidden(hidden, weight, targets, keeps_entropy=keeps) for keeps in (True, False)
    )
    assert_close(torch.autograd.grad(plain.sum(), hidden), torch.autograd.grad(logprobs.sum(), hidden))
    assert_close(plain_facts, [fact.detach() for fact in facts])
    assert [fact.requires_grad for fact in (*facts, *plain_facts)] == [True, False, False, False]


def test_a_head_that_learns_is_refused():
    with pytest.raises(ValueError, match="frozen output embedding"):
        scores_from_hidden(torch.randn(4, 3), torch.randn(6, 3, requires_grad=True), torch.tensor([0, 1, 2, 3]))
