"""Intervals by leaving one out."""

import numpy as np
import pytest
from scipy import stats

from rlcredit.statistics.jackknife import jackknife_interval


def test_that_of_a_mean_is_students():
    values = np.random.default_rng(0).normal(size=9)
    without = np.array([np.delete(values, place).mean() for place in range(len(values))])
    found = jackknife_interval(values.mean(), without)
    assert found[:2] == pytest.approx(tuple(stats.ttest_1samp(values, 0).confidence_interval(0.95)))


def test_an_estimate_that_no_part_changes_is_a_point():
    assert jackknife_interval(0.3, np.full(5, 0.3))[:2] == (0.3, 0.3)
