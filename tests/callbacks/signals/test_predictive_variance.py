import pytest
import torch
from torch.testing import assert_close

from callbacks.signals.predictive_variance import PredictiveVariance, masked_rank_correlation
from rlcredit.formulas.uncertainty import predictive_variance


def test_predictive_variance_of_the_published_logprobs():
    values = predictive_variance(torch.tensor([0.0, -0.06, -0.693, -5.0, -100.0]))
    assert_close(values, torch.tensor([0.0, 0.05484, 0.25, 0.00669, 0.0]), atol=5.1e-6, rtol=0)


def test_the_signal_is_the_variance_of_the_draw(rollout):
    PredictiveVariance().assign(rollout)
    assert_close(rollout.signal, rollout.old_logprobs.exp() * (1 - rollout.old_logprobs.exp()), atol=1e-7, rtol=1e-5)


def test_predictive_variance_is_no_surprisal_in_other_units(rollout):
    # Above one half both fall with p; below, they part.
    rollout.mask = torch.ones_like(rollout.mask)
    rollout.old_logprobs = torch.tensor([0.95, 0.85, 0.7, 0.4, 0.2, 0.1]).log().expand(8, 6)
    metrics = {name: float(value) for name, value in PredictiveVariance().assign(rollout).items()}
    assert metrics["unlikely_fraction"] == 0.5
    # p (1 - p) = .0475 .1275 .21 .24 .16 .09 ranks 1 3 5 6 4 2 where surprisal ranks 1 2 3 4 5 6: 1 - 6 * 26 / 210.
    assert metrics["surprisal_rank_correlation"] == pytest.approx(1 - 6 * 26 / 210)
    assert metrics["surprisal_correlation"] < 0.3
    rollout.old_logprobs = torch.tensor([0.99, 0.95, 0.9, 0.8, 0.7, 0.6]).log().expand(8, 6)
    metrics = {name: float(value) for name, value in PredictiveVariance().assign(rollout).items()}
    assert metrics["surprisal_rank_correlation"] == pytest.approx(1.0)
    assert metrics["surprisal_correlation"] < 0.999
    assert metrics["unlikely_fraction"] == 0


def test_rank_correlation_is_scipys():
    from scipy.stats import spearmanr

    values, others = torch.randint(0, 5, (3, 8)).float(), torch.randint(0, 5, (3, 8)).float()
    mask = torch.rand(3, 8) < 0.8
    expected = spearmanr(values[mask].numpy(), others[mask].numpy()).statistic
    assert masked_rank_correlation(values, others, mask).item() == pytest.approx(expected)
