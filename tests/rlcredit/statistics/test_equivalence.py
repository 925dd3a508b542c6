import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.weightstats import ttost_ind, ttost_paired

from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.t_test import paired_t_test, t_test, welch_t_test

runs = st.lists(st.integers(0, 512), min_size=3, max_size=9, unique=True).map(lambda right: np.array(right) / 512)


@settings(deadline=None, max_examples=50)
@given(runs, st.floats(0.01, 0.5))
def test_paired_equivalence_equals_statsmodels(arm, margin):
    baseline = arm[::-1] ** 2
    p, *_ = ttost_paired(arm, baseline, -margin, margin)
    assert equivalence_test(paired_t_test(arm - baseline), margin).p == pytest.approx(p, abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(runs, runs, st.floats(0.01, 0.5))
def test_equivalence_of_independent_arms_equals_statsmodels(arm, baseline, margin):
    p, *_ = ttost_ind(arm, baseline, -margin, margin, usevar="unequal")
    assert equivalence_test(welch_t_test(arm, baseline), margin).p == pytest.approx(p, abs=1e-9)


@given(st.floats(-2, 2), st.floats(0.05, 2), st.integers(2, 30), st.sampled_from([0.01, 0.05, 0.1]))
def test_p_is_below_alpha_exactly_if_the_interval_lies_inside_the_margin(difference, error, df, alpha):
    found = equivalence_test(t_test(difference, error, df), margin=1.0, alpha=alpha)
    assert (found.p < alpha) == (max(abs(found.interval.low), abs(found.interval.high)) < 1)
    assert found.interval.level == pytest.approx(1 - 2 * alpha)


def test_a_difference_at_the_margin_has_p_of_one_half_at_least():
    assert equivalence_test(t_test(1.0, 0.2, df=7), margin=1.0).p == pytest.approx(0.5)
    assert equivalence_test(t_test(1.2, 0.2, df=7), margin=1.0).p > 0.5


def test_a_large_p_of_no_difference_is_no_equivalence():
    noisy = paired_t_test([0.05, -0.04, 0.03, -0.04])
    assert noisy.p > 0.9
    assert equivalence_test(noisy, margin=0.01).p > 0.3


def test_arms_that_never_differ_are_equivalent():
    assert equivalence_test(paired_t_test([0.0, 0.0, 0.0]), margin=0.01).p == 0.0
    assert equivalence_test(paired_t_test([0.5, 0.5, 0.5]), margin=0.25).p == 1.0


def test_no_margin_is_refused():
    with pytest.raises(ValueError, match="Equivalence expects margin > 0, got 0"):
        equivalence_test(t_test(0.0, 1.0, df=4), margin=0)
