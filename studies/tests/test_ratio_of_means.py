import math

import numpy as np
import pytest
from scipy import stats

from studies.measured_credit.ratio_of_means import ratio_of_means

GAINS = np.array([0.010, -0.005, 0.030, 0.020, 0.000, 0.015, -0.010, 0.025])
GAPS = np.array([0.040, 0.030, 0.060, 0.050, 0.070, 0.020, 0.045, 0.065])


def rejected(ratio, level):
    """Return whether a paired t test of what the ratio would leave over finds something."""
    return stats.ttest_1samp(GAINS - ratio * GAPS, 0).pvalue < 1 - level


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_holds_the_ratios_that_a_paired_t_does_not_reject(level):
    value, (low, high, _) = ratio_of_means(GAINS, GAPS, level)
    assert value == pytest.approx(GAINS.mean() / GAPS.mean())
    assert [rejected(each, level) for each in (low - 1e-6, high + 1e-6)] == [True, True]
    assert not any(rejected(each, level) for each in np.linspace(low + 1e-6, high - 1e-6, 50))


def test_a_known_denominator_leaves_the_interval_of_the_numerator():
    _, (low, high, _) = ratio_of_means(GAINS, np.full(8, 0.5))
    assert (low / 2, high / 2) == pytest.approx(stats.ttest_1samp(GAINS, 0).confidence_interval(0.95))


def test_units_and_the_sign_of_both_do_not_matter():
    one, other = ratio_of_means(-100 * GAINS, -100 * GAPS), ratio_of_means(GAINS, GAPS)
    assert (one.value, *one.interval) == pytest.approx((other.value, *other.interval))


def test_of_a_gap_that_may_be_none_everything_may_be_the_share():
    _, (low, high, _) = ratio_of_means(GAINS, GAPS - 0.04)
    assert stats.ttest_1samp(GAPS - 0.04, 0).pvalue > 0.05
    assert (low, high) == (-math.inf, math.inf)


def test_the_whole_gap_is_one_without_any_doubt():
    assert ratio_of_means(GAPS, GAPS) == (1.0, pytest.approx((1.0, 1.0, 0.95), abs=1e-6))


def test_runs_that_are_no_pairs_are_refused():
    with pytest.raises(ValueError, match="8 numerators and 7 denominators"):
        ratio_of_means(GAINS, GAPS[1:])
    with pytest.raises(ValueError, match="mean zero"):
        ratio_of_means(GAINS, [1.0, -1.0] * 4)


@pytest.mark.parametrize(("gap", "held"), [(0.5, 0.98), (2.0, 0.95), (4.0, 0.95)])
def test_intervals_of_ratios_hold_ninety_five_percent_or_more_where_the_denominator_may_be_zero(gap, held):
    random = np.random.default_rng(0)
    values = random.multivariate_normal([0.3 * gap, gap], [[1, 0.5], [0.5, 1]], (5000, 8))
    intervals = [ratio_of_means(*study.T).interval for study in values]
    assert np.mean([low <= 0.3 <= high for low, high, _ in intervals]) == pytest.approx(held, abs=0.015)
