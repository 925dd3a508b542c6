import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from rlcredit.statistics.adjusted_p import benjamini_hochberg_adjusted_p, holm_adjusted_p

families = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_four_conditions_by_hand():
    ps = [0.012, 0.3, 0.04, 0.02]
    assert holm_adjusted_p(ps) == pytest.approx([4 * 0.012, 0.3, 2 * 0.04, 3 * 0.02])
    assert benjamini_hochberg_adjusted_p(ps) == pytest.approx([0.04, 0.3, 0.04 * 4 / 3, 0.04])


@pytest.mark.parametrize("ps", [[0.012, 0.3, 0.04, 0.02, 0.04], [0.0, 1.0], np.linspace(0.001, 0.2, 12)[::-1]])
def test_equals_statsmodels(ps):
    assert holm_adjusted_p(ps) == pytest.approx(multipletests(ps, method="holm")[1])
    assert benjamini_hochberg_adjusted_p(ps) == pytest.approx(multipletests(ps, method="fdr_bh")[1])


@given(families)
def test_order_is_kept_and_no_p_falls(ps):
    for adjusted in (holm_adjusted_p(ps), benjamini_hochberg_adjusted_p(ps)):
        assert (adjusted >= np.array(ps) - 1e-15).all()
        assert (adjusted <= 1).all()
        assert (np.diff(adjusted[np.argsort(ps, kind="stable")]) >= 0).all()


@given(families)
def test_holm_is_never_the_more_lenient(ps):
    assert (holm_adjusted_p(ps) >= benjamini_hochberg_adjusted_p(ps) - 1e-15).all()


def test_one_test_needs_no_correction():
    assert holm_adjusted_p([0.03]) == benjamini_hochberg_adjusted_p([0.03]) == 0.03
