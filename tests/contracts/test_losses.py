"""Value and gradient of every loss against a second derivation in float64, and what all losses have in common."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from rlcredit.losses import (
    CISPO,
    FIPO,
    GSPO,
    SIS,
    TEPO,
    ClipCov,
    ClippedSurrogate,
    ImportanceSampling,
    KLCov,
    KLPenalty,
    MeanRatio,
)
from tests.contracts import references
from tests.rlcredit.losses.batches import batch, ragged, value_and_gradient

LOSSES = {
    "PPO": (ClippedSurrogate(dual=1.5), lambda *a, **_: references.expected_clipped_loss(*a, 0.2, 0.2, 1.5)),
    "clip-higher": (
        ClippedSurrogate(high=0.28),
        lambda *a, **_: references.expected_clipped_loss(*a, 0.2, 0.28, math.inf),
    ),
    "CISPO": (CISPO(cap=1.3), lambda *a, **_: references.expected_cispo_loss(*a, 1.3)),
    "GSPO": (GSPO(low=0.1, high=0.2), lambda *a, **_: references.expected_gspo_loss(*a, 0.1, 0.2)),
    "TEPO": (
        TEPO(low=0.1, high=0.2, beta=0.7),
        lambda *a, now, then, **_: references.expected_tepo_loss(*a, 0.1, 0.2, 0.7, now, then),
    ),
    "KL-Cov": (KLCov(beta=0.5, share=0.2), lambda *a, **_: references.expected_kl_cov_loss(*a, 0.5, 0.2)),
    "FIPO": (
        FIPO(half_life=2.0, weight_low=0.5, weight_high=1.6, outlier=1.8, safe=1.2),
        lambda *a, **_: references.expected_fipo_loss(*a, 2.0, 0.5, 1.6, 1.8, 1.2, 0.2, 0.28),
    ),
}


@pytest.mark.parametrize("method", LOSSES)
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_value_and_gradient_are_those_of_the_second_derivation(method, seed):
    rollout = batch(seed)
    loss, theirs = LOSSES[method]
    value, gradient = value_and_gradient(loss, rollout)

    def rows(values):
        return ragged(values, rollout.mask)

    expected, slopes = theirs(
        rows(rollout.logprobs),
        rows(rollout.old_logprobs),
        rows(rollout.advantages),
        now=rows(rollout.now),
        then=rows(rollout.entropy),
    )
    assert value == pytest.approx(expected, abs=2e-5)
    assert (gradient[~rollout.mask] == 0).all()
    for mine, other in zip(rows(gradient), slopes):
        assert mine == pytest.approx(other, abs=2e-5)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_the_penalty_is_that_of_the_second_derivation_whatever_loss_it_is_added_to(seed):
    rollout = batch(seed)
    expected, slopes = references.expected_kl_penalty(
        ragged(rollout.logprobs, rollout.mask), ragged(rollout.ref_logprobs, rollout.mask), 0.3
    )
    for inner in (ImportanceSampling(), ClippedSurrogate(), TEPO(low=0.1, high=0.2)):
        bare, whole = value_and_gradient(inner, rollout), value_and_gradient(KLPenalty(inner, beta=0.3), rollout)
        assert whole[0] - bare[0] == pytest.approx(expected, abs=2e-5)
        for mine, other in zip(ragged(whole[1] - bare[1], rollout.mask), slopes):
            assert mine == pytest.approx(other, abs=2e-5)


NEUTRAL = [
    ClippedSurrogate(low=1.0, high=math.inf),
    CISPO(cap=math.inf),
    KLCov(beta=0.0),
    KLPenalty(beta=0.0),
    ClipCov(window_low=math.inf, high=math.inf),
    SIS(envelope=math.inf, low=1.0, high=math.inf),
    FIPO(weight_low=1.0, weight_high=1.0, low=1.0, high=math.inf),
]


@pytest.mark.parametrize("loss", NEUTRAL, ids=lambda loss: type(loss).__name__)
def test_with_neutral_arguments_the_gradient_is_that_of_importance_sampling(loss):
    rollout = batch(3)
    assert_close(value_and_gradient(loss, rollout)[1], value_and_gradient(ImportanceSampling(), rollout)[1])


EVERY = [ClippedSurrogate(), CISPO(), KLCov(), ClipCov(window_low=math.inf), FIPO(), SIS(), TEPO()]


@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: type(loss).__name__)
def test_on_policy_every_loss_has_the_gradient_of_reinforce(loss):
    rollout = batch(5, spread=0.0)
    _, gradient = value_and_gradient(loss, rollout, update=0)
    tokens = rollout.mask.sum()
    assert_close(gradient, -(rollout.advantages / tokens).where(rollout.mask, 0), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_padding_may_hold_anything(name):
    loss, rollout = LOSSES[name][0], batch(11)
    value, gradient = value_and_gradient(loss, rollout)
    for field in ("logprobs", "old_logprobs", "advantages", "ref_logprobs", "entropy", "now"):
        setattr(rollout, field, getattr(rollout, field).detach().where(rollout.mask, torch.nan))
    again, same = value_and_gradient(loss, rollout)
    assert again == value
    assert torch.equal(same, gradient)
    penalised, grad = value_and_gradient(KLPenalty(loss), rollout)
    assert math.isfinite(penalised)
    assert grad.isfinite().all()


BOUNDED = [
    ClippedSurrogate(dual=3.0),
    ClippedSurrogate(dual=3.0, denominator="sequence"),
    CISPO(),
    GSPO(),
    MeanRatio(),
    FIPO(),
    ClipCov(window_low=math.inf),
    SIS(),
    TEPO(beta=0.5),
    KLPenalty(ClippedSurrogate(dual=3.0)),
]
"""Losses whose value no ratio makes large where credit is positive."""


@pytest.mark.parametrize("loss", BOUNDED, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("beyond", [79.0, 81.0, 95.0, 800.0])
def test_a_ratio_that_float32_cannot_hold_leaves_a_bounded_loss_its_gradient(loss, beyond):
    rollout = batch(3)
    rollout.advantages = rollout.advantages.abs() + 0.1
    rollout.old_logprobs = rollout.old_logprobs.index_put((torch.tensor([0]), torch.tensor([0])), torch.tensor(-beyond))
    value, gradient = value_and_gradient(loss, rollout)
    assert math.isfinite(value)
    assert gradient.isfinite().all()
    if type(loss) is ClippedSurrogate:
        assert gradient[0, 0] == 0
        assert gradient.any()


def test_a_ratio_that_overflows_on_a_bad_token_is_the_dual_clips_or_a_loss_as_large_as_it_says():
    logprobs = torch.tensor([[-0.5]], requires_grad=True)
    arguments = (torch.tensor([[-95.5]]), torch.tensor([[-1.0]]), torch.tensor([[True]]))
    clipped, free = ClippedSurrogate(dual=3.0)(logprobs, *arguments), ClippedSurrogate()(logprobs, *arguments)
    assert clipped.item() == 3
    assert free.item() == pytest.approx(math.exp(80), rel=1e-5)
    for loss in (clipped, free):
        assert torch.autograd.grad(loss, logprobs)[0].item() == 0
    assert ImportanceSampling()(logprobs, *arguments).item() == math.inf  # the run stops and names the loss


@pytest.mark.parametrize("loss", [ImportanceSampling(), KLCov(), CISPO(cap=math.inf), ClippedSurrogate()])
def test_a_token_without_credit_never_overflows(loss):
    logprobs = torch.tensor([[-0.5, -0.5]], requires_grad=True)
    credit = torch.tensor([[0.0, 1.0]])
    value = loss(logprobs, torch.tensor([[-95.5, -0.5]]), credit, torch.tensor([[True, True]]), update=0)
    gradient = torch.autograd.grad(value, logprobs)[0]
    assert value.isfinite()
    assert gradient[0].tolist() == [0.0, -0.5]


@pytest.mark.parametrize("name", LOSSES)
def test_rows_without_tokens_have_no_gradient_and_no_rows_are_a_batch(name):
    loss, rollout = LOSSES[name][0], batch(4)
    rollout.mask = torch.zeros_like(rollout.mask)
    value, gradient = value_and_gradient(loss, rollout)
    assert value == 0
    assert not gradient.any()
    for field, tensor in list(vars(rollout).items()):
        if isinstance(tensor, torch.Tensor):
            vars(rollout)[field] = tensor.detach()[:0]  # all at once, as a batch without rows has them
    assert value_and_gradient(loss, rollout)[0] == 0
