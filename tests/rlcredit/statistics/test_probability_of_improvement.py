import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rlcredit.statistics.probability_of_improvement import probability_of_improvement

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
