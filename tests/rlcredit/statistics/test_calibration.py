"""Do the tests err and the intervals hold as often as they say? On normal runs, and on bounded, skewed pass@1.

Rates are of 5000 simulated studies, mostly of eight seeds, known to 0.3 points (one standard error); those of families
and verdicts are of 1500 studies, of intervals by resampling 2000 or 1000, known to 0.5 to 0.7 points.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from rlcredit.statistics.adjusted_p import holm_adjusted_p
from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.hedges_g import paired_hedges_g
from rlcredit.statistics.new_question_interval import new_question_interval
from rlcredit.statistics.sign_flip import sign_flip_p
from rlcredit.statistics.t_test import paired_t_test, welch_t_test
from tests.rlcredit.statistics.simulated_runs import arm, conclude_one, expected, pairs

STUDIES, SEEDS = 5000, 8


def normal(random, shape):
    return random.normal(size=shape)


def coverage(intervals, truth):
    """Return the share of intervals that hold the truth."""
    return np.mean([low <= truth <= high for low, high, _ in intervals])


@pytest.fixture
def random():
    return np.random.default_rng(0)


@pytest.mark.parametrize("differences", [normal, pairs])
def test_paired_tests_find_nothing_in_nothing_but_one_time_in_twenty(random, differences):
    rows = differences(random, (STUDIES, SEEDS))
    assert np.mean([paired_t_test(row).p <= 0.05 for row in rows]) == pytest.approx(0.05, abs=0.01)
    assert np.mean([sign_flip_p(row) <= 0.05 for row in rows]) == pytest.approx(6 / 128, abs=0.01)  # p is k / 128


@pytest.mark.parametrize("runs", [normal, arm])
def test_welch_finds_nothing_in_nothing_but_one_time_in_twenty(random, runs):
    arms = runs(random, (STUDIES, 2, SEEDS))
    assert np.mean([welch_t_test(*both).p <= 0.05 for both in arms]) == pytest.approx(0.05, abs=0.01)


def test_welch_keeps_its_rate_where_students_t_does_not(random):
    few, many = random.normal(0, 3, (STUDIES, 6)), random.normal(0, 1, (STUDIES, 18))
    welch = [welch_t_test(one, other) for one, other in zip(few, many)]
    assert np.mean([test.p <= 0.05 for test in welch]) == pytest.approx(0.05, abs=0.01)  # Student's t: 22 %
    assert coverage([test.interval for test in welch], 0.0) == pytest.approx(0.95, abs=0.01)


def test_holm_over_four_conditions_with_one_baseline_errs_once_in_twenty_families(random):
    families = arm(random, (1500, 4, SEEDS)) - arm(random, (1500, 1, SEEDS))
    smallest = [holm_adjusted_p([paired_t_test(row).p for row in family]).min() for family in families]
    assert np.mean(np.array(smallest) <= 0.05) <= 0.05 + 3 * 0.0056


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.005, 0.01, 0.02])
def test_equivalence_at_the_margin_is_claimed_one_time_in_twenty_at_most(random, spread):
    margin = 0.01
    differences = random.normal(margin, spread, (STUDIES, SEEDS))
    arms = random.normal([[margin], [0.0]], spread, (STUDIES, 2, SEEDS))
    assert np.mean([equivalence_test(paired_t_test(row), margin).p <= 0.05 for row in differences]) <= 0.05 + 3 * 0.0031
    assert np.mean([equivalence_test(welch_t_test(*both), margin).p <= 0.05 for both in arms]) <= 0.05 + 3 * 0.0031


@pytest.mark.slow
def test_equivalence_of_pass_at_1_at_the_margin_is_claimed_one_time_in_twenty_at_most(random):
    better = 0.3
    margin = expected(better, np.hypot(0.2, 0.3)) - expected(0.0, np.hypot(0.2, 0.3))  # 1.3 points
    paired = [equivalence_test(paired_t_test(row), margin).p for row in pairs(random, (STUDIES, SEEDS), better)]
    assert np.mean(np.array(paired) <= 0.05) <= 0.05 + 3 * 0.0031


def test_equivalence_of_skewed_runs_at_a_wide_margin_is_claimed_somewhat_too_often(random):
    better = 0.6  # 2.3 points, many standard errors, so that the long tail of weak runs counts
    margin = expected(better) - expected()
    arms = zip(arm(random, (STUDIES, SEEDS), better), arm(random, (STUDIES, SEEDS)))
    welch = [equivalence_test(welch_t_test(*both), margin).p for both in arms]
    margin = expected(better, np.hypot(0.2, 0.3)) - expected(0.0, np.hypot(0.2, 0.3))
    paired = [equivalence_test(paired_t_test(row), margin).p for row in pairs(random, (STUDIES, SEEDS), better)]
    assert np.mean(np.array(welch) <= 0.05) == pytest.approx(0.06, abs=0.01)
    assert np.mean(np.array(paired) <= 0.05) == pytest.approx(0.067, abs=0.01)


@pytest.mark.parametrize("mean", [0.0, 0.01])
def test_verdicts_err_one_time_in_twenty_at_most(random, mean):
    said = [conclude_one(row, margin=0.01) for row in random.normal(mean, 0.008, (1500, SEEDS))]
    wrong = {0.0: ("better", "worse"), 0.01: ("worse", "equivalent within 1 pp")}[mean]
    assert np.mean([word in wrong for word in said]) <= 0.05 + 3 * 0.0056


@pytest.mark.parametrize("differences", [normal, pairs])
def test_t_intervals_hold_ninety_five_percent(random, differences):
    rows = differences(random, (STUDIES, SEEDS))
    assert coverage([paired_t_test(row).interval for row in rows], 0.0) == pytest.approx(0.95, abs=0.02)
    tests = [paired_t_test(row) for row in rows]
    assert coverage([equivalence_test(test, margin=1.0).interval for test in tests], 0.0) == pytest.approx(
        0.90, abs=0.02
    )


def test_intervals_of_hedges_g_hold_ninety_five_percent(random):
    effects = [paired_hedges_g(row) for row in random.normal(1.0, 1.0, (2000, SEEDS))]
    assert coverage([effect.interval for effect in effects], 1.0) == pytest.approx(0.95, abs=0.02)
    assert np.mean([effect.g for effect in effects]) == pytest.approx(1.0, abs=0.04)  # d: 1.13


@pytest.mark.slow
@pytest.mark.parametrize(("values", "truth"), [(normal, 0.0), (arm, expected()), (pairs, 0.0)])
def test_resampling_eight_runs_holds_less_than_the_ninety_five_percent_of_students_t(random, values, truth):
    rows = values(random, (2000, SEEDS))
    low, high = stats.bootstrap((rows,), np.mean, axis=1, n_resamples=1000, random_state=0).confidence_interval
    assert np.mean((low <= truth) & (truth <= high)) == pytest.approx(0.88, abs=0.02)
    assert coverage([paired_t_test(row).interval for row in rows], truth) == pytest.approx(0.95, abs=0.02)


def verdicts(random, paired):
    """Return rates over four samples of eight runs on 256 prompts, or differences of two arms sharing both."""
    seeds, prompts = 0.2 * random.normal(size=(SEEDS, 1)), 1.5 * random.normal(size=256)

    def one():
        own = 0.3 * random.normal(size=(SEEDS, 1)) + 0.3 * random.normal(size=256)
        return random.binomial(4, expit(4.5 + seeds + prompts + own)) / 4

    return (one() - one() if paired else one())[..., None]


@pytest.mark.slow
@pytest.mark.parametrize("paired", [False, True])
def test_intervals_for_new_questions_hold_ninety_five_percent(random, paired):
    deviation = np.sqrt(0.2**2 + 1.5**2 + 2 * 0.3**2)
    truth = 0.0 if paired else expected(4.5 - np.log(19), deviation)
    intervals = [new_question_interval(verdicts(random, paired)) for _ in range(1000)]
    assert coverage(intervals, truth) == pytest.approx(0.95, abs=0.02)
