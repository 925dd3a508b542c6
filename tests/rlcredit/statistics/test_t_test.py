import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rlcredit.statistics.t_test import mean_difference_t_test, paired_t_test, t_test, welch_t_test

runs = st.lists(st.integers(0, 512), min_size=2, max_size=9, unique=True).map(lambda right: np.array(right) / 512)


@settings(deadline=None, max_examples=50)
@given(runs, runs, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_welch_equals_scipy(arm, baseline, level):
    ours, theirs = welch_t_test(arm, baseline, level), stats.ttest_ind(arm, baseline, equal_var=False)
    low, high = theirs.confidence_interval(level)
    assert ours.difference == pytest.approx(arm.mean() - baseline.mean())
    assert (ours.statistic, ours.df, ours.p) == pytest.approx((theirs.statistic, theirs.df, theirs.pvalue))
    assert ours.interval == pytest.approx((low, high, level), abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(runs, st.floats(-1, 1))
def test_the_paired_t_equals_scipy(arm, shift):
    baseline = shift * arm[::-1] ** 2
    ours, theirs = paired_t_test(arm - baseline, level=0.9), stats.ttest_rel(arm, baseline)
    low, high = theirs.confidence_interval(0.9)
    assert (ours.statistic, ours.df, ours.p) == pytest.approx((theirs.statistic, theirs.df, theirs.pvalue), rel=1e-6)
    assert ours.interval == pytest.approx((low, high, 0.9), abs=1e-6)


def test_welch_by_hand():
    test = welch_t_test([1.0, 3.0], [0.0, 0.0, 3.0])  # variances 2/2 = 1 and 3/3 = 1, so df = 4 / (1/1 + 1/2)
    assert (test.difference, test.standard_error) == pytest.approx((1.0, math.sqrt(2)))
    assert test.df == pytest.approx(8 / 3)


@given(runs, runs)
def test_exchanging_the_arms_turns_the_sign_only(arm, baseline):
    one, other = welch_t_test(arm, baseline), welch_t_test(baseline, arm)
    assert (one.p, one.statistic, one.interval.low) == pytest.approx((other.p, -other.statistic, -other.interval.high))


@given(runs)
def test_zero_is_inside_the_interval_exactly_if_p_is_above_alpha(arm):
    test = paired_t_test(arm - 0.3)
    assert (test.interval.low < 0 < test.interval.high) == (test.p > 0.05)


def test_without_spread_the_limits_are_told():
    assert (paired_t_test([0.0, 0.0]).p, paired_t_test([0.5, 0.5]).p) == (1.0, 0.0)
    assert welch_t_test([0.5, 0.5], [0.75, 0.75]).statistic == -math.inf
    assert welch_t_test([0.5, 0.5], [0.75, 0.75, 0.75]).df == 3


@pytest.mark.parametrize(("df", "quantile"), [(1, 12.706), (2, 4.303), (7, 2.365), (30, 2.042)])
def test_quantiles_of_the_printed_table(df, quantile):
    assert t_test(0.0, 1.0, df).interval.high == pytest.approx(quantile, abs=5e-4)
    assert t_test(quantile, 1.0, df).p == pytest.approx(0.05, abs=5e-5)


@settings(deadline=None, max_examples=50)
@given(runs, runs)
def test_half_of_welchs_difference_is_a_mean_of_two(arm, baseline):
    ours = mean_difference_t_test([paired_t_test(arm), paired_t_test(-baseline)])
    welch = welch_t_test(arm, baseline)
    assert (2 * ours.difference, 2 * ours.standard_error) == pytest.approx((welch.difference, welch.standard_error))
    assert (ours.df, ours.p) == pytest.approx((welch.df, welch.p))


def test_means_of_independent_differences_hold_their_level():
    generator = np.random.default_rng(0)
    spreads = np.array([0.3, 1.0, 1.0, 2.0, 5.0])[:, None]
    ps = [
        mean_difference_t_test([paired_t_test(row) for row in spreads * generator.standard_normal((5, 6))]).p
        for _ in range(4000)
    ]
    assert np.mean(np.array(ps) < 0.05) == pytest.approx(0.05, abs=0.01)


def test_the_mean_of_no_differences_is_unknown():
    with pytest.raises(ValueError, match="Give one test"):
        mean_difference_t_test([])
