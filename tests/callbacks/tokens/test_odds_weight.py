import math

import pytest
import torch
from torch.testing import assert_close

from callbacks.dense.monte_carlo_credit import optimal_baseline_credit
from callbacks.tokens.odds_weight import OddsWeight
from tests.callbacks.rollouts import rollout_of


def likely(probabilities, advantages):
    rollout = rollout_of([1.0, 0.0], 2, [[0.0] * 3] * 2, advantages)
    rollout.old_logprobs = torch.tensor([probabilities] * 2).log()
    return rollout


def test_credit_is_multiplied_by_the_odds():
    rollout = likely([0.9, 0.5, 0.2], [[1.0] * 3, [-2.0] * 3])
    OddsWeight().assign(rollout)
    assert_close(rollout.advantages, torch.tensor([[9.0, 1.0, 0.25], [-18.0, -2.0, -0.5]]))


def test_the_limit_holds_and_certain_tokens_get_nothing():
    rollout = likely([0.9, 0.5, 1.0], [[1.0] * 3, [-1.0] * 3])
    metrics = OddsWeight(limit=4.0).assign(rollout)
    assert_close(rollout.advantages, torch.tensor([[4.0, 1.0, 0.0], [-4.0, -1.0, 0.0]]))
    assert (metrics["capped_fraction"], metrics["certain_fraction"]) == pytest.approx((1 / 3, 1 / 3))
    assert metrics["weight_mean"] == pytest.approx(5 / 3)


def test_it_is_the_factor_of_the_optimal_baseline():
    rollout = likely([0.7, 0.2, 0.99], [[0.3, -0.1, 0.5], [0.2, 0.0, -0.4]])
    optimal = optimal_baseline_credit(rollout.advantages, rollout.old_logprobs)
    OddsWeight().assign(rollout)
    assert_close(rollout.advantages, optimal)


def test_the_largest_advantage_is_known_with_a_limit():
    assert OddsWeight(limit=3.0).bound(0.5, 8) == 1.5
    assert OddsWeight().bound(0.5, 8) == math.inf
    with pytest.raises(ValueError, match="limit above 0, got 0"):
        OddsWeight(limit=0)
