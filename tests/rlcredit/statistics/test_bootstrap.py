import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlcredit.statistics.bootstrap import bootstrap_interval
from rlcredit.statistics.t_test import paired_t_test

SKEWED = [0.95, 0.96, 0.94, 0.95, 0.96, 0.90, 0.95, 0.96]


def test_many_normal_runs_have_the_interval_of_students_t():
    values = np.random.default_rng(0).normal(size=400)
    ours, students = bootstrap_interval(values, draws=4000), paired_t_test(values).interval
    width = students.high - students.low
    assert (ours.low, ours.high) == pytest.approx((students.low, students.high), abs=0.06 * width)


def test_the_interval_reaches_farther_towards_the_weak_run():
    low, high, _ = bootstrap_interval(SKEWED)
    mean = np.mean(SKEWED)
    assert mean - low > 2 * (high - mean)


def test_turned_values_turn_the_interval():
    ours, turned = bootstrap_interval(SKEWED), bootstrap_interval([-value for value in SKEWED])
    assert (turned.low, turned.high) == pytest.approx((-ours.high, -ours.low))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 512), min_size=5, max_size=10), st.integers(0, 3))
def test_tied_runs_have_a_finite_interval_around_the_mean(right, seed):
    values = np.array(right) / 512
    low, high, _ = bootstrap_interval(values, draws=500, seed=seed)
    assert np.isfinite([low, high]).all()
    assert low <= values.mean() <= high


def test_a_higher_level_is_wider():
    widths = [high - low for low, high, _ in (bootstrap_interval(SKEWED, level) for level in (0.8, 0.9, 0.95))]
    assert widths == sorted(widths)


def test_equal_runs_have_a_point():
    assert bootstrap_interval([0.5] * 5) == (0.5, 0.5, 0.95)


def test_the_seed_is_an_argument():
    assert bootstrap_interval(SKEWED, draws=200, seed=3) == bootstrap_interval(SKEWED, draws=200, seed=3)
    assert bootstrap_interval(SKEWED, draws=200, seed=3) != bootstrap_interval(SKEWED, draws=200, seed=4)


def test_four_runs_are_too_few():
    with pytest.raises(ValueError, match=r"A bootstrap interval needs a row of at least 5 values, got shape \(4,\)"):
        bootstrap_interval([1.0, 2.0, 3.0, 4.0])
