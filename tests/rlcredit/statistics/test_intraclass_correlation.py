import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rlcredit.statistics.intraclass_correlation import intraclass_correlation


def test_three_prompts_by_hand():
    # means 1, 1/2, 0: MS_b = 2 * 1/4; MS_w = (1/4 + 1/4) / 3
    assert intraclass_correlation([[1, 1], [1, 0], [0, 0]]) == pytest.approx((1 / 2 - 1 / 6) / (1 / 2 + 1 / 6))


def test_recovers_the_correlation_of_success_rates():
    random = np.random.default_rng(0)
    rates = random.beta(0.5, 1.5, (1000, 1))  # correlation 1 / (0.5 + 1.5 + 1)
    assert intraclass_correlation(random.random((1000, 16)) < rates) == pytest.approx(1 / 3, abs=0.03)


def test_independent_outcomes_have_none_on_average():
    random = np.random.default_rng(0)
    found = [intraclass_correlation(random.random((20, 8)) < 0.9) for _ in range(2000)]
    assert np.mean(found) == pytest.approx(0, abs=0.005)
    assert min(found) < 0


@given(arrays(np.int8, (4, 3), elements=st.integers(0, 1)))
def test_it_lies_in_its_range_and_right_and_wrong_may_be_exchanged(outcomes):
    found = intraclass_correlation(outcomes)
    assert -1 / 2 - 1e-12 <= found <= 1 + 1e-12
    assert intraclass_correlation(1 - outcomes) == pytest.approx(found)


def test_outcomes_without_spread_have_none():
    assert intraclass_correlation(np.ones((4, 8))) == 0.0


@pytest.mark.parametrize("shape", [(8,), (1, 8), (8, 1)])
def test_one_prompt_or_one_sample_is_refused(shape):
    with pytest.raises(ValueError, match="both at least 2"):
        intraclass_correlation(np.ones(shape))
