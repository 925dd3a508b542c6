import math

import pytest
import torch

from rlcredit.losses import ClipCov, ClippedSurrogate
from tests.contracts import references
from tests.rlcredit.losses.batches import CREDIT, MOVED, batch, by_hand, ragged, value_and_gradient


def test_clip_cov_takes_the_gradient_of_its_share_among_the_candidates():
    rollout = batch(10)
    window = {"window_low": 0.01, "window_high": 0.5}
    candidates = references.expected_clip_cov_candidates(
        ragged(rollout.logprobs, rollout.mask), ragged(rollout.advantages, rollout.mask), 0.01, 0.5
    )
    _, plain = value_and_gradient(ClippedSurrogate(1.0, 1.0), rollout)
    for share in (1e-6, 0.1, 1.0):
        loss = ClipCov(share=share, **window)
        _, gradient = value_and_gradient(loss, rollout)
        gone = rollout.mask & (gradient == 0) & (plain != 0)
        allowed = [ok for row in candidates for ok in row]
        inside = sum(ok for ok, slope in zip(allowed, plain[rollout.mask].tolist()) if slope)
        assert int(gone.sum()) == min(inside, max(1, math.floor(share * int(rollout.mask.sum()))))
        assert all(ok for ok, lost in zip(allowed, gone[rollout.mask].tolist()) if lost)
        assert torch.equal(gradient[~gone], plain[~gone])


def test_an_impossible_share_or_window_is_refused():
    with pytest.raises(ValueError, match="share in"):
        ClipCov(share=2.0)
    with pytest.raises(ValueError, match="window_low < window_high"):
        ClipCov(window_low=5.0, window_high=1.0)


def test_the_lot_falls_on_one_of_two_candidates():
    old = torch.tensor(MOVED) - torch.tensor([[math.log(1.5), 0, 0, 0]])
    loss = ClipCov(share=0.25, window_low=0.5, window_high=2.0)
    token_uniforms = torch.tensor([[0.1, 0.9, 0.9, 0.8]])  # the first and the last token lie in the window
    value, slopes, metrics = by_hand(loss, torch.tensor(MOVED).exp(), old, CREDIT, token_uniforms=token_uniforms)
    assert value == pytest.approx(-(1.5 * 3 + 1 - 1) / 4)
    assert slopes == [pytest.approx([-1.125, -0.25, 0.25, 0])]
    assert metrics["drawn"] == 0.25
