"""What the SEPA paper's published numbers say when computed right.

Per-seed values are those of its tables for seeds 42, 101 and 202, in percent, arm first; three runs each.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats
from statsmodels.stats.meta_analysis import effectsize_smd
from statsmodels.stats.proportion import samplesize_proportions_2indep_onetail

from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.power import detectable_effect, seeds_needed, t_test_power
from rlcredit.statistics.run_aggregates import learning_curve_area
from rlcredit.statistics.sign_flip import sign_flip_p, smallest_sign_flip_p
from rlcredit.statistics.t_test import paired_t_test, welch_t_test
from tests.rlcredit.statistics.simulated_runs import conclude_one

PUBLISHED = Path(__file__).parents[1] / "published" / "results" / "published.csv"


def published(experiment):
    """Return the values of every arm of an experiment, its baseline last."""
    with PUBLISHED.open() as file:
        rows = [row for row in csv.DictReader(file) if row["experiment"] == experiment]
    names = sorted({(row["role"], row["condition"]) for row in rows})
    return [[float(row["percent"]) for row in rows if (row["role"], row["condition"]) == name] for name in names]


LARGE = np.array(published("30B"))  # SEPA: 60.16 against 57.55
SMALL = np.array(published("4B, semantic detector"))
AMPLIFIED, CLAMPED = ([arm, published("4B, amplification")[-1]] for arm in published("4B, amplification")[:-1])
MASKED = published("4B, entropy mask")
HICRA = [published("4B")[0], published("4B")[-1]]
VARIANCE = published("4B, signals")  # predictive variance against surprisal


def generations_needed(base, rise):
    """Return the independent generations per arm that show a rise of the base rate, at a power of 0.8."""
    return samplesize_proportions_2indep_onetail(rise, base, power=0.8)


def detectable_rise(base, generations):
    """Return the smallest rise of the base rate that so many independent generations per arm show."""
    return optimize.brentq(lambda rise: generations_needed(base, rise) - generations, 1e-4, 0.5)


def test_the_published_t_of_the_large_model_is_cohens_d():
    test = welch_t_test(*LARGE)
    assert (test.difference, test.statistic, test.df) == pytest.approx((2.607, 1.890, 2.47), abs=0.005)
    assert test.p == pytest.approx(0.174, abs=0.001)  # published: t = 1.54, p = 0.26
    d = test.difference / np.sqrt(LARGE.var(axis=1, ddof=1).mean())
    assert d == pytest.approx(1.54, abs=0.005)
    assert 2 * stats.t.sf(d, 2) == pytest.approx(0.26, abs=0.005)  # how the published p came about


def test_other_tests_of_the_large_model_say_the_same():
    differences = LARGE[0] - LARGE[1]
    assert paired_t_test(differences).statistic == pytest.approx(1.890, abs=0.001)
    assert paired_t_test(differences).p == pytest.approx(0.199, abs=0.001)
    assert stats.ttest_ind(*LARGE).pvalue == pytest.approx(0.132, abs=0.001)
    assert sign_flip_p(differences) == 0.5  # three pairs reach 0.25 at best, and one of these is tied


def test_hedges_g_of_the_large_model():
    moments = [(runs.mean(), runs.std(ddof=1), len(runs)) for runs in LARGE]
    assert effectsize_smd(*moments[0], *moments[1])[0] == pytest.approx(1.23, abs=0.005)


def test_three_times_less_variance_is_no_finding():
    low, high = LARGE.var(axis=1, ddof=1)
    assert np.sqrt(high / low) == pytest.approx(2.9, abs=0.05)  # three times less deviation, eight times less variance
    assert 2 * stats.f.sf(high / low, 2, 2) == pytest.approx(0.21, abs=0.005)


def test_every_entry_of_the_large_model_is_one_batch_of_128_samples():
    right = LARGE * 128 / 100
    assert right == pytest.approx(np.array([[76, 77, 78], [72, 77, 72]]), abs=0.01)
    rate = LARGE.mean() / 100
    assert np.sqrt(rate * (1 - rate) / 128) == pytest.approx(0.0435, abs=0.0001)
    assert np.sqrt(2 * rate * (1 - rate) / (3 * 128)) == pytest.approx(0.0355, abs=0.0001)  # more than the 2.6 points


@pytest.mark.parametrize(
    ("arms", "difference", "p"),
    [
        (HICRA, -0.43, 0.51),
        (SMALL, -0.08, 0.92),
        (AMPLIFIED, 0.07, 0.88),
        (CLAMPED, -0.63, 0.23),
        (MASKED, -0.30, 0.61),
        (VARIANCE, -0.78, 0.10),
        (LARGE, 2.61, 0.17),
    ],
)
def test_differences_and_welch_p(arms, difference, p):
    test = welch_t_test(*arms)
    assert (test.difference, test.p) == pytest.approx((difference, p), abs=0.005)


def test_two_published_t_are_right():
    assert (welch_t_test(*SMALL).statistic, welch_t_test(*SMALL).df) == pytest.approx((-0.114, 2.6), abs=0.03)
    assert welch_t_test(*VARIANCE).statistic == pytest.approx(-2.12, abs=0.005)


def test_a_neutral_regression_is_significant_if_seeds_are_pairs_and_not_otherwise():
    paired = paired_t_test(np.subtract(*CLAMPED))
    assert (paired.statistic, paired.p) == pytest.approx((-4.36, 0.049), abs=0.005)
    assert welch_t_test(*CLAMPED).p > 0.2


@pytest.mark.parametrize("arms", [SMALL, AMPLIFIED, MASKED, VARIANCE, LARGE])
def test_no_null_claim_is_shown_within_one_point(arms):
    difference = np.subtract(*arms)
    assert equivalence_test(paired_t_test(difference), margin=1.0).p > 0.1
    assert conclude_one(difference / 100, margin=0.01).startswith("undecided")


def test_what_the_definitive_null_of_three_seeds_leaves_open():
    low, high, _ = welch_t_test(*SMALL).interval
    assert (low, high) == pytest.approx((-2.54, 2.38), abs=0.01)
    assert conclude_one(np.subtract(*SMALL) / 100, margin=0.01) == "undecided: a new campaign needs 34 seeds"


def test_the_predicted_ranking_at_step_ten_is_not_significant_even_at_its_ends():
    shape = stats.zscore([0, 1, 2, 3], ddof=1)  # any four values with the published mean and deviation
    test = welch_t_test(35.1 + 1.0 * shape, 32.9 + 2.1 * shape)
    assert (test.statistic, test.p) == pytest.approx((1.89, 0.127), abs=0.005)


def test_areas_over_four_runs_bear_no_bootstrap():
    assert smallest_sign_flip_p(4) == 0.125  # published: an interval of 0.1 to 0.6 points, by resampling four runs
    studies = np.random.default_rng(0).normal(size=(2000, 4))
    low, high = stats.bootstrap((studies,), np.mean, axis=1, n_resamples=1000, random_state=0).confidence_interval
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(0.79, abs=0.02)  # meant for 95 %


def test_the_published_milestones_have_the_same_area():
    steps = [10, 20, 50, 80, 95, 99]
    surprisal, variance = [62.2, 69.3, 63.8, 83.1, 97.1, 51.3], [58.9, 69.3, 64.1, 83.9, 96.9, 50.5]
    assert learning_curve_area(steps, [surprisal, variance]) == pytest.approx([73.1, 73.2], abs=0.05)


def test_23_thousand_generations_show_more_than_a_point_and_not_a_fifth_of_one():
    assert detectable_rise(0.34, 23_000) == pytest.approx(0.0124, abs=5e-5)
    assert detectable_rise(0.45, 22_990) == pytest.approx(0.013, abs=5e-5)
    assert generations_needed(0.34, 0.002) == pytest.approx(882_000, rel=0.001)
    assert generations_needed(0.45 - 0.0065, 0.013) == pytest.approx(22_990, rel=0.001)  # its origin
    assert detectable_rise(0.476, 38_400) == pytest.approx(0.0101, abs=5e-5)  # of the follow-up, unclustered


@pytest.mark.parametrize(
    ("rates", "thousands"),
    [((0.50, 0.51), 39.2), ((0.50, 0.52), 9.8), ((0.50, 0.55), 1.56), ((0.463, 0.489), 5.8), ((0.34, 0.342), 882)],
)
def test_generations_per_arm(rates, thousands):
    base, better = rates
    assert generations_needed(base, better - base) == pytest.approx(1000 * thousands, rel=0.005)


@pytest.mark.parametrize(("correlation", "effect"), [(0.1, 2.5), (0.3, 5.5), (0.5, 8.5)])
def test_design_effects_of_sixteen_samples(correlation, effect):
    covariance = np.full((16, 16), correlation) + (1 - correlation) * np.eye(16)
    assert covariance.mean() / (1 / 16) == pytest.approx(effect)  # variance of the mean, over independent ones


@pytest.mark.parametrize(
    ("effect", "seeds", "power"),
    [(0.5, 64, 0.08), (0.8, 26, 0.12), (1, 17, 0.16), (1.5, 9, 0.29), (2, 6, 0.46), (3, 4, 0.78), (1.54, 8, 0.31)],
)
def test_seeds_per_arm_and_what_three_can_find(effect, seeds, power):
    assert seeds_needed(effect) == seeds
    assert t_test_power(effect, seeds=3) == pytest.approx(power, abs=0.005)


def test_a_small_effect_needs_hundreds_of_seeds():
    assert seeds_needed(0.2) == 394


def test_three_seeds_of_the_large_model_find_five_points():
    deviation = np.sqrt(LARGE.var(axis=1, ddof=1).mean())
    assert detectable_effect(seeds=3) * deviation == pytest.approx(5.2, abs=0.05)
