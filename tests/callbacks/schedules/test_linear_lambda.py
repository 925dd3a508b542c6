import pytest
from hypothesis import given
from hypothesis import strategies as st

from callbacks.schedules.linear_lambda import LinearLambda
from rlcredit.formulas.ramps import linear_ramp
from tests.callbacks.schedules.lambdas import lambdas


@pytest.mark.parametrize(
    ("steps", "delay", "step", "expected"),
    [
        (100, 5, 99, 0.94),  # (99 - 5) / 100, the most a run of 100 steps sees
        (100, 5, 0, 0.0),
        (100, 5, 5, 0.0),
        (100, 5, 6, 0.01),
        (100, 5, 19, 0.14),
        (100, 5, 50, 0.45),
        (100, 5, 104, 0.99),
        (100, 5, 105, 1.0),
        (100, 10, 15, 0.05),
        (100, 10, 19, 0.09),
        (500, 50, 99, 0.098),
        (500, 50, 499, 0.898),
        (137, 2, 136, 0.978),
        (30, 2, 29, 0.90),
    ],
)
def test_lambda_of_the_published_schedules(steps, delay, step, expected):
    assert linear_ramp(step, delay, steps) == pytest.approx(expected, abs=5e-4)
    assert lambdas([LinearLambda(delay, steps)], [step]) == [linear_ramp(step, delay, steps)]


@given(st.integers(0, 1000), st.integers(0, 100), st.integers(1, 500))
def test_a_ramp_never_falls_and_stays_in_range(step, delay, steps):
    assert 0 <= linear_ramp(step, delay, steps) <= linear_ramp(step + 1, delay, steps) <= 1


def test_a_ramp_that_is_none_is_refused():
    with pytest.raises(ValueError, match="For a lambda of one from the start use ConstantLambda"):
        LinearLambda(steps=0)
    with pytest.raises(ValueError, match="delay >= 0"):
        LinearLambda(delay=-1)
