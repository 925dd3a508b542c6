import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.meta_analysis import effectsize_smd

from rlcredit.statistics.hedges_g import hedges_g, paired_hedges_g

runs = st.lists(st.integers(0, 512), min_size=2, max_size=9, unique=True).map(lambda right: np.array(right) / 512)


def test_three_runs_per_arm_by_hand():
    effect = hedges_g([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])  # d = 2; J(4) = gamma(2) / (sqrt(2) gamma(1.5))
    assert effect.g == pytest.approx(2 / (math.sqrt(2) * 0.886227))


def test_two_pairs_give_zero_because_one_degree_of_freedom_has_no_mean():
    assert paired_hedges_g([1.0, 2.0]).g == 0.0


@settings(deadline=None, max_examples=50)
@given(runs, runs)
def test_agrees_with_statsmodels_up_to_its_approximate_factor(arm, baseline):
    df = len(arm) + len(baseline) - 2
    moments = [(x.mean(), x.std(ddof=1), len(x)) for x in (arm, baseline)]
    theirs = effectsize_smd(*moments[0], *moments[1])[0]
    assert hedges_g(arm, baseline).g == pytest.approx(theirs, rel=0.06 if df == 2 else 0.006)  # 1 - 3 / (4 df - 1)


@settings(deadline=None, max_examples=50)
@given(runs, runs, st.sampled_from([0.8, 0.9, 0.95]))
def test_the_interval_inverts_the_noncentral_t(arm, baseline, level):
    interval = hedges_g(arm, baseline, level).interval
    t = stats.ttest_ind(arm, baseline).statistic
    scale, df = math.sqrt(1 / len(arm) + 1 / len(baseline)), len(arm) + len(baseline) - 2
    assert stats.nct.cdf(t, df, interval.low / scale) == pytest.approx((1 + level) / 2, abs=1e-4)
    assert stats.nct.cdf(t, df, interval.high / scale) == pytest.approx((1 - level) / 2, abs=1e-4)


@given(runs)
def test_the_interval_of_pairs_holds_zero_exactly_if_the_paired_t_does(arm):
    differences = arm - 0.4
    interval = paired_hedges_g(differences).interval
    assert (interval.low < 0 < interval.high) == (stats.ttest_1samp(differences, 0).pvalue > 0.05)


@given(runs, runs)
def test_neither_unit_nor_common_shift_matters(arm, baseline):
    assert hedges_g(100 * arm + 7, 100 * baseline + 7).g == pytest.approx(hedges_g(arm, baseline).g, abs=1e-9)


def test_shared_seeds_make_the_paired_g_the_larger_one():
    baseline = np.array([0.2, 0.5, 0.8, 0.4])
    arm = baseline + np.array([0.10, 0.11, 0.09, 0.10])
    assert paired_hedges_g(arm - baseline).g > 5 > 0.5 > hedges_g(arm, baseline).g


def test_no_spread_has_no_standardised_effect():
    with pytest.raises(ValueError, match=r"Hedges' g divides 0\.5 by the spread of runs, which is 0"):
        paired_hedges_g([0.5, 0.5, 0.5])
