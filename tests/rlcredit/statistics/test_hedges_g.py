import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rlcredit.statistics.hedges_g import paired_hedges_g

runs = st.lists(st.integers(0, 512), min_size=2, max_size=9, unique=True).map(lambda right: np.array(right) / 512)


def test_five_pairs_by_hand():
    row = np.array([0.0, 1.0, 2.0, 3.0, 4.0])  # d = 2 / sqrt(2.5); J(4) = gamma(2) / (sqrt(2) gamma(1.5))
    assert paired_hedges_g(row).g == pytest.approx(2 / math.sqrt(2.5) / (math.sqrt(2) * 0.886227))


def test_two_pairs_give_zero_because_one_degree_of_freedom_has_no_mean():
    assert paired_hedges_g([1.0, 2.0]).g == 0.0


@settings(deadline=None, max_examples=50)
@given(runs, st.sampled_from([0.8, 0.9, 0.95]))
def test_the_interval_inverts_the_noncentral_t(row, level):
    interval = paired_hedges_g(row - 0.4, level).interval
    t, scale, df = stats.ttest_1samp(row, 0.4).statistic, math.sqrt(1 / len(row)), len(row) - 1
    assert stats.nct.cdf(t, df, interval.low / scale) == pytest.approx((1 + level) / 2, abs=1e-4)
    assert stats.nct.cdf(t, df, interval.high / scale) == pytest.approx((1 - level) / 2, abs=1e-4)


@given(runs)
def test_the_interval_of_pairs_holds_zero_exactly_if_the_paired_t_does(row):
    differences = row - 0.4
    interval = paired_hedges_g(differences).interval
    assert (interval.low < 0 < interval.high) == (stats.ttest_1samp(differences, 0).pvalue > 0.05)


@given(runs)
def test_no_unit_matters(row):
    assert paired_hedges_g(100 * (row - 0.4)).g == pytest.approx(paired_hedges_g(row - 0.4).g, abs=1e-9)


def test_no_spread_has_no_standardised_effect():
    with pytest.raises(ValueError, match=r"Hedges' g divides 0\.5 by the spread of runs, which is 0"):
        paired_hedges_g([0.5, 0.5, 0.5])
