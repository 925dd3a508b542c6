"""The baseline under which a gradient varies least, against all actions of a softmax."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from callbacks.dense.monte_carlo_credit import optimal_baseline_credit

VALUES = st.floats(0, 1)


def choices(logits, values):
    """Return probabilities, true advantages, and scores with respect to the logits, one row per token."""
    pi = torch.tensor(logits, dtype=torch.float64).softmax(-1)
    values = torch.tensor(values, dtype=torch.float64)
    return pi, values - pi @ values, torch.eye(len(pi), dtype=torch.float64) - pi


@given(st.floats(-8, 8), VALUES, VALUES)
def test_of_two_tokens_either_has_the_expected_gradient(logit, one, other):
    pi, advantages, scores = choices([logit, 0.0], [one, other])
    expected = (pi * advantages) @ scores
    each = optimal_baseline_credit(advantages, pi.log())[:, None] * scores
    assert_close(each, expected.expand(2, -1))


@given(st.floats(-8, 8), VALUES, VALUES)
def test_of_two_tokens_it_is_the_baseline_that_squared_scores_weigh(logit, one, other):
    pi, advantages, scores = choices([logit, 0.0], [one, other])
    weights = pi * scores.square().sum(-1)
    baseline = (weights @ advantages) / weights.sum()
    assert_close(optimal_baseline_credit(advantages, pi.log()), advantages - baseline)


def test_of_more_tokens_the_direction_is_roughly_kept_while_the_variance_falls():
    torch.manual_seed(0)
    cosines, spreads = [], []
    for _ in range(200):
        pi, advantages, scores = choices([6.0, *torch.randn(4).tolist()], torch.rand(5).round().tolist())
        if advantages.abs().max() < 1e-9:
            continue
        expected = (pi * advantages) @ scores
        found = [credit[:, None] * scores for credit in (advantages, optimal_baseline_credit(advantages, pi.log()))]
        cosines.append(torch.cosine_similarity(pi @ found[1], expected, 0))
        spreads.append([pi @ (each - pi @ each).square().sum(-1) for each in found])
    assert torch.stack(cosines).mean() > 0.75
    plain, optimal = torch.tensor(spreads).mean(0)
    assert optimal < 0.05 * plain


def test_of_equally_likely_tokens_the_expected_gradient_is_shorter():
    for k in (2, 3, 10):
        pi, advantages, scores = choices([0.0] * k, torch.linspace(0, 1, k).tolist())
        found = (pi * optimal_baseline_credit(advantages, pi.log())) @ scores
        assert_close(found, (pi * advantages) @ scores / (k - 1))


def test_a_sure_token_has_no_credit():
    assert optimal_baseline_credit(torch.tensor([[0.0, 0.125]]), torch.zeros(1, 2)).tolist() == [[0.0, 0.0]]
