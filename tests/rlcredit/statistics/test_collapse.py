import numpy as np
import pytest
from scipy import stats

from rlcredit.statistics.collapse import clopper_pearson_interval, clopper_pearson_limit, collapsed_run_mask
from rlcredit.statistics.t_test import t_test


def test_a_run_far_below_its_condition_has_collapsed_and_a_bad_condition_has_not():
    assert collapsed_run_mask([0.90, 0.92, 0.80, 0.91]).tolist() == [False, False, True, False]
    assert not collapsed_run_mask([0.47, 0.48, 0.46]).any()
    assert not collapsed_run_mask([0.9]).any()


@pytest.mark.parametrize(("events", "trials"), [(0, 8), (1, 8), (3, 10), (8, 8)])
def test_the_highest_rate_is_clopper_and_pearsons(events, trials):
    limit = stats.binomtest(events, trials, alternative="less").proportion_ci(0.95, method="exact").high
    assert clopper_pearson_limit(events, trials) == pytest.approx(limit)
    exact = stats.binomtest(events, trials).proportion_ci(0.95, method="exact")
    assert clopper_pearson_interval(events, trials)[:2] == pytest.approx(tuple(exact))


def test_an_interval_of_means_does_not_survive_rare_collapses():
    """Ten runs of 0.95 with a deviation of half a point, one in twenty of which falls by 20 pp."""
    rng = np.random.default_rng(0)
    runs = 0.95 + rng.normal(0, 0.005, (4000, 10)) - 0.2 * (rng.random((4000, 10)) < 0.05)
    true = 0.95 - 0.2 * 0.05
    intervals = [t_test(row.mean(), row.std(ddof=1) / 10**0.5, 9).interval for row in runs]
    covered = np.mean([low <= true <= high for low, high, _ in intervals])
    assert covered < 0.75
