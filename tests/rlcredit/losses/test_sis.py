import math

import pytest
import torch

from rlcredit.losses import CISPO, SIS, ClippedSurrogate, ImportanceSampling
from tests.rlcredit.losses.batches import batch, by_hand, value_and_gradient


def test_accepted_tokens_count_one_and_rejected_ones_keep_their_clipped_ratio():
    # Ratios 2, 1/2, 1/2 and 1/2 with draws that accept the first two; the last is clipped at 0.8 and has no gradient.
    old = torch.tensor([[0.25, 0.5, 0.5, 0.5]]).log()
    draws = torch.tensor([[0.99, 0.49, 0.51, 0.51]])
    value, slopes, metrics = by_hand(SIS(), [[0.5, 0.25, 0.25, 0.25]], old, [[3.0, -1, 1, -1]], token_uniforms=draws)
    assert value == pytest.approx(-(3 - 1 + 0.5 - 0.8) / 4)
    assert slopes == [pytest.approx([-0.75, 0.25, -0.125, 0])]
    assert metrics == {"accepted": 0.5, "clipped_high": 0, "clipped_low": 0.25, "clipped_dual": 0}


def test_an_envelope_of_two_accepts_half_as_many():
    # Ratios 2, 1 and 1/2 are accepted with probability 1, 1/2 and 1/4; the second draw is too high, the third is not.
    old = torch.tensor([[0.25, 0.5, 0.5]]).log()
    draws = torch.tensor([[0.99, 0.51, 0.24]])
    _, slopes, metrics = by_hand(SIS(envelope=2.0), [[0.5, 0.5, 0.25]], old, [[1.0, 1, 0]], token_uniforms=draws)
    assert slopes == [pytest.approx([-1 / 3, -1 / 3, 0])]
    assert metrics["accepted"] == 0.5  # of the tokens with credit


@pytest.mark.parametrize("ratio", [0.3, 0.9, 1.0, 1.5])
@pytest.mark.parametrize("envelope", [1.0, 2.0])
def test_the_mean_gradient_over_all_draws_is_the_one_that_was_derived(ratio, envelope):
    draws = (torch.arange(2000.0)[None] + 0.5) / 2000
    old = torch.full_like(draws, math.log(0.2 / ratio))
    loss = SIS(envelope=envelope, low=1.0, high=math.inf)
    _, slopes, _ = by_hand(loss, torch.full_like(draws, 0.2), old, [[1.0] * 2000], token_uniforms=draws)
    share = min(1, ratio / envelope)
    assert -sum(slopes[0]) == pytest.approx(ratio + share * (1 - ratio), abs=1e-3)
    if envelope == 1:
        assert -sum(slopes[0]) == pytest.approx(1 - max(0, 1 - ratio) ** 2, abs=1e-3)
        dropped = [slope if acceptance else 0 for slope, acceptance in zip(slopes[0], (draws < ratio)[0].tolist())]
        _, bounded, _ = by_hand(CISPO(cap=1.0), torch.full_like(draws, 0.2), old, [[1.0] * 2000])
        assert sum(dropped) == pytest.approx(sum(bounded[0]), abs=1e-3)


@pytest.mark.parametrize("envelope", [1.0, 3.0, math.inf])
def test_on_policy_it_is_importance_sampling_bit_for_bit(envelope):
    rollout = batch(5, spread=0.0)
    value, gradient = value_and_gradient(SIS(envelope=envelope), rollout)
    same, plain = value_and_gradient(ImportanceSampling(), rollout)
    assert value == same
    assert torch.equal(gradient, plain)


def test_an_infinite_envelope_is_the_clipped_surrogate_bit_for_bit():
    value, gradient = value_and_gradient(SIS(envelope=math.inf, high=0.28), batch(3))
    same, plain = value_and_gradient(ClippedSurrogate(high=0.28), batch(3))
    assert value == same
    assert torch.equal(gradient, plain)


def test_no_clip_stops_an_accepted_token():
    old = torch.tensor([[0.1]]).log()
    _, slopes, _ = by_hand(SIS(), [[0.4]], old, [[1.0]], token_uniforms=torch.tensor([[0.9]]))
    _, clipped, _ = by_hand(ClippedSurrogate(), [[0.4]], old, [[1.0]])
    assert (slopes, clipped) == ([[-1.0]], [[0.0]])


def test_an_envelope_below_one_is_refused():
    with pytest.raises(ValueError, match=r"SIS expects envelope >= 1, got 0.5. On policy every ratio is one."):
        SIS(envelope=0.5)


def test_a_run_computed_in_parts_draws_the_same_tokens(fit):
    whole, cut = (fit(steps=4, loss=SIS(), updates_per_rollout=4, micro_batch_tokens=size) for size in ("auto", 100))
    assert whole.history[-1]["train/accepted"] == cut.history[-1]["train/accepted"]
    assert 0.5 < whole.history[-1]["train/accepted"] <= 1
    assert cut.losses == pytest.approx(whole.losses, abs=1e-6)
