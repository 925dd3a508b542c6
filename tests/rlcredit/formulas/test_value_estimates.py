"""Credit from values, and how good values are, against sums that a person can check."""

import itertools

import pytest
import torch
from torch.testing import assert_close

from rlcredit.formulas.value_estimates import (
    calibration_sums,
    critic_briers,
    expected_gradient_weights,
    following_values,
    generalized_advantages,
    reward_baselines,
    value_skill,
)
from tests.callbacks.rollouts import THREE_AND_TWO

REWARDS = torch.tensor([1.0, 0.0])
VALUES = torch.tensor([[0.5, 0.75, 0.25], [0.5, 0.25, 9.0]])
"""Values of a right completion of three tokens and of a wrong one of two; the last number is padding."""


@pytest.mark.parametrize(
    ("lam", "expected"),
    [
        (0.0, [[0.25, -0.5, 0.75], [-0.25, -0.25, 0.0]]),  # the change of the value
        (0.5, [[0.1875, -0.125, 0.75], [-0.375, -0.25, 0.0]]),  # -0.5 + 0.75 / 2, then 0.25 - 0.125 / 2
        (1.0, [[0.5, 0.25, 0.75], [-0.5, -0.25, 0.0]]),  # the reward less the value
        (torch.tensor([0.0, 1.0]), [[0.25, -0.5, 0.75], [-0.5, -0.25, 0.0]]),
    ],
    ids=str,
)
def test_generalized_advantages_of_three_tokens_and_of_two(lam, expected):
    assert_close(generalized_advantages(REWARDS, VALUES, THREE_AND_TWO, lam), torch.tensor(expected))


def test_the_last_token_is_followed_by_the_reward():
    following = following_values(REWARDS, VALUES, THREE_AND_TWO)
    assert following[THREE_AND_TWO].tolist() == [0.75, 0.25, 1.0, 0.25, 0.0]


def test_expected_gradient_weights_of_three_tokens_and_of_two():
    probabilities = torch.tensor([0.1, 0.5, 0.3, 0.1, 0.2])
    values = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5])
    places = torch.tensor([1, 0, 0, 1, 0])
    weights = expected_gradient_weights(probabilities, values, places, number=2)
    # Mean values: 0.5 + 0.2 / 2 = 0.6 of three tokens that are all there is, 0.1 / 0.2 = 0.5 of two.
    assert_close(weights, torch.tensor([-0.05, 0.2, -0.18, 0.05, -0.02]))


def softmax_gradient(weights, logits):
    """Return the gradient of the weighted log-probabilities of all tokens with respect to the logits."""
    logits = logits.clone().requires_grad_()
    (weights @ logits.log_softmax(-1)).backward()
    return logits.grad


def five_tokens():
    generator = torch.Generator().manual_seed(5)
    draw = torch.randn(2, 5, generator=generator, dtype=torch.float64)
    return draw[0], draw[1]


def test_over_the_whole_vocabulary_the_weights_give_the_gradient_of_the_expected_value():
    logits, values = five_tokens()
    weights = expected_gradient_weights(logits.softmax(-1), values, torch.zeros(5, dtype=torch.long), number=1)
    expected = logits.clone().requires_grad_()
    (expected.softmax(-1) @ values).backward()
    assert_close(softmax_gradient(weights, logits), expected.grad, atol=1e-12, rtol=0)


def test_over_some_tokens_the_weights_give_the_gradient_within_them():
    logits, values = five_tokens()
    some, pi = torch.tensor([0, 2, 3]), logits.softmax(-1)
    weights = expected_gradient_weights(pi[some], values[some], torch.zeros(3, dtype=torch.long), number=1)
    expected = logits.clone().requires_grad_()
    (expected[some].softmax(-1) @ values[some] * pi[some].sum()).backward()
    found = softmax_gradient(torch.zeros(5, dtype=torch.float64).index_copy(0, some, weights), logits)
    assert_close(found, expected.grad, atol=1e-12, rtol=0)


def test_pairs_of_a_sample_and_one_other_token_have_the_same_expectation():
    logits, values = five_tokens()
    pi = logits[:4].softmax(-1)
    weights = torch.zeros(4, dtype=torch.float64)
    for a, b in itertools.permutations(range(4), 2):
        chance = pi[a] * pi[b] / (1 - pi[a])
        weight = (1 - pi[a]) * (1 - pi[b]) / (2 - pi[a] - pi[b]) * (values[a] - values[b])
        weights[a] += chance * weight
        weights[b] -= chance * weight
    every = torch.zeros(4, dtype=torch.long)
    assert_close(expected_gradient_weights(pi, values[:4], every, number=1), weights, atol=1e-12, rtol=0)


def three_completions():
    """Values of a right completion, a wrong one and one without a verdict; the last value of the second is padding."""
    mask = torch.tensor([[True, True], [True, False], [True, True]])
    return torch.tensor([[0.5, 0.8], [0.25, 9.0], [0.9, 0.9]]), torch.tensor([1.0, 0.0, torch.nan]), mask


def test_brier_scores_and_skill_leave_out_what_was_not_judged():
    values, rewards, mask = three_completions()
    brier, baseline = critic_briers(values, rewards, mask, group_size=3)
    assert brier.item() == pytest.approx((0.5**2 + 0.2**2 + 0.25**2) / 3)
    assert baseline.item() == pytest.approx(1.0)  # each judged completion has the other as its baseline
    assert value_skill(brier, baseline).item() == pytest.approx(1 - 0.1175)


def test_calibration_sums_leave_out_what_was_not_judged():
    values, rewards, mask = three_completions()
    together, own = calibration_sums(values, rewards, mask)
    # Three tokens count, and one value has changed: by 0.3, where the reward lies 0.5 above the first value.
    assert together.item() == pytest.approx(0.3 * 0.5 / 3)
    assert own.item() == pytest.approx(0.09 / 3)


def test_a_completion_alone_has_the_mean_of_the_batch_as_its_baseline():
    rewards = torch.tensor([1.0, 0.0, torch.nan, 0.5])
    assert reward_baselines(rewards, group_size=1).tolist() == [0.5] * 4
    assert reward_baselines(rewards, group_size=4).tolist() == [0.25, 0.75, 0.5, 0.5]


@pytest.mark.parametrize(("brier", "baseline", "skill"), [(0.3, 0.2, 0.0), (0.0, 0.0, 0.0), (0.05, 0.2, 0.75)])
def test_no_critic_has_less_skill_than_none(brier, baseline, skill):
    assert value_skill(torch.tensor(brier), torch.tensor(baseline)).item() == pytest.approx(skill)
