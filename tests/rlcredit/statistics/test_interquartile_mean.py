import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlcredit.statistics.interquartile_mean import interquartile_mean


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
