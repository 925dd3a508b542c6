"""Spearman's correlation against SciPy's."""

import numpy as np
import pytest
from scipy import stats

from rlcredit.statistics.spearman_correlation import spearman_correlation


@pytest.mark.parametrize("seed", range(5))
def test_it_is_scipys_with_and_without_ties(seed):
    left, right = np.random.default_rng(seed).normal(size=(2, 12)).round(seed % 2)
    assert spearman_correlation(left, right) == pytest.approx(stats.spearmanr(left, right).statistic)


def test_a_constant_has_no_order():
    assert np.isnan(spearman_correlation([1, 1, 1], [1, 2, 3]))
