import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from callbacks.tokens.probability_weight import ProbabilityWeight, probability_weights
from tests.callbacks.rollouts import numbers, rollout_of


def test_unlikely_tokens_get_less():
    rollout = rollout_of([1.0], 1, [[0.5] * 3], [[2.0, -2.0, 2.0]])
    rollout.old_logprobs = torch.tensor([[1.0, 0.5, 0.1]]).log()
    metrics = numbers(ProbabilityWeight(alpha=0.5).assign(rollout))
    assert rollout.advantages[0].tolist() == pytest.approx([2.0, -1.5, 1.1])
    assert metrics["weight_mean"] == pytest.approx((1 + 0.75 + 0.55) / 3)
    assert metrics["credit_fraction"] == pytest.approx(4.6 / 6)


@given(st.floats(-20.0, 0.0), st.floats(0.0, 1.0))
def test_a_weight_lies_between_one_minus_alpha_and_one(logprob, alpha):
    weight = probability_weights(torch.tensor(logprob, dtype=torch.float64), alpha).item()
    assert 1 - alpha - 1e-12 <= weight <= 1 + 1e-12


def test_an_alpha_that_would_flip_signs_is_refused():
    with pytest.raises(ValueError, match=r"ProbabilityWeight expects alpha in \[0, 1\], got 1.5. Beyond, signs would"):
        ProbabilityWeight(alpha=1.5)
