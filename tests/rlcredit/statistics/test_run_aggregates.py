import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rlcredit.statistics.run_aggregates import (
    interquartile_mean,
    learning_curve_area,
    probability_of_improvement,
    steps_to_threshold,
)


def test_the_middle_half_of_eight_runs():
    assert interquartile_mean([8, 1, 7, 2, 6, 3, 5, 100]) == pytest.approx((3 + 5 + 6 + 7) / 4)


def test_a_collapsed_run_changes_nothing():
    assert interquartile_mean([0.0, 0.6, 0.6, 0.7]) == interquartile_mean([0.6, 0.6, 0.6, 0.7]) == 0.6


def test_runs_and_tasks_are_pooled():
    assert interquartile_mean([[0.0, 0.5], [0.7, 1.0]]) == pytest.approx(0.6)


def test_three_runs_are_all_kept():
    assert interquartile_mean([0.0, 0.5, 1.0]) == 0.5


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_the_order_of_runs_does_not_matter(scores):
    assert interquartile_mean(scores) == pytest.approx(interquartile_mean(np.sort(scores)[::-1]))


scores = st.lists(st.integers(0, 5), min_size=1, max_size=8)


def test_the_same_runs_tie_at_one_half():
    assert probability_of_improvement([0.5, 0.6], [0.5, 0.6]) == 0.5


def test_three_runs_against_two():
    assert probability_of_improvement([1, 2, 3], [2, 0]) == pytest.approx((1 + 1 + 1 + 0 + 0.5 + 1) / 6)


def test_tasks_are_compared_with_themselves_only():
    assert probability_of_improvement([[0.9, 0.1]], [[0.8, 0.2]]) == 0.5


@given(scores, scores)
def test_it_is_mann_whitneys_u_per_pair(arm, baseline):
    u = stats.mannwhitneyu(arm, baseline, method="asymptotic").statistic if len({*arm, *baseline}) > 1 else None
    expected = 0.5 if u is None else u / (len(arm) * len(baseline))
    assert probability_of_improvement(arm, baseline) == pytest.approx(expected)


@given(scores, scores)
def test_both_directions_sum_to_one(arm, baseline):
    assert probability_of_improvement(arm, baseline) + probability_of_improvement(baseline, arm) == pytest.approx(1)


def test_unequal_steps_weigh_by_their_width():
    # (10 * (0 + 0.4) / 2 + 30 * (0.4 + 0.8) / 2) / 40 = (2 + 18) / 40
    assert learning_curve_area([0, 10, 40], [0.0, 0.4, 0.8]) == pytest.approx(0.5)


def test_each_curve_has_its_area():
    areas = learning_curve_area([5, 6, 7], [[1.0, 1.0, 1.0], [0.0, 1.0, 0.0]])
    assert areas == pytest.approx([1.0, 0.5])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.floats(-5, 5), st.floats(0.1, 10))
def test_neither_the_first_step_nor_the_unit_of_steps_matters(values, first, unit):
    steps = np.arange(len(values)) ** 2.0
    assert learning_curve_area(first + unit * steps, values) == pytest.approx(learning_curve_area(steps, values))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_the_area_lies_between_the_lowest_and_the_highest_point(values):
    assert min(values) - 1e-12 <= learning_curve_area(np.arange(len(values)), values) <= max(values) + 1e-12


@pytest.mark.parametrize("steps", [[3], [0, 10, 10], [10, 0, 20]])
def test_steps_that_do_not_increase_are_refused(steps):
    with pytest.raises(ValueError, match="at least two increasing steps"):
        learning_curve_area(steps, np.ones(len(steps)))


def test_a_threshold_is_reached_between_evaluations():
    assert steps_to_threshold({0: 0.25, 10: 0.5, 20: 1.0}, 0.75) == 15
    assert steps_to_threshold({0: 0.7, 10: 0.1}, 0.6) == 0
    assert steps_to_threshold({0: 0.2, 10: 0.4}, 0.6) == float("inf")
