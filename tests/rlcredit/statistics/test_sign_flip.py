import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rlcredit.statistics.sign_flip import (
    fewest_sign_flip_pairs,
    sign_flip_interval,
    sign_flip_p,
    smallest_sign_flip_p,
)


def test_five_pairs_never_reach_five_percent():
    assert sign_flip_p([1.0, 2.0, 3.0, 4.0, 1000.0]) == smallest_sign_flip_p(5) == 0.0625
    assert sign_flip_p([1.0] * 6) == smallest_sign_flip_p(6) == 0.03125


def test_a_tied_pair_says_nothing_either_way():
    assert sign_flip_p([3.12, 0.0, 4.69]) == sign_flip_p([3.12, 4.69]) == 0.5


def test_equal_arms_have_p_one():
    assert sign_flip_p([0.0, 0.0, 0.0]) == 1.0


def test_decimals_that_cancel_are_ties_despite_rounding():
    differences = [-0.6, -1.5, 0.9, -0.3, 1.5]
    assert 0 < abs(sum(differences)) < 1e-15
    assert sign_flip_p(differences) == 1.0


@pytest.mark.parametrize(("alpha", "pairs"), [(0.5, 2), (0.25, 3), (0.05, 6), (0.05 / 4, 8), (0.01, 8), (0.001, 11)])
def test_fewest_pairs_are_the_first_whose_smallest_p_will_do(alpha, pairs):
    assert fewest_sign_flip_pairs(alpha) == pairs
    assert smallest_sign_flip_p(pairs) <= alpha < smallest_sign_flip_p(pairs - 1)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=7))
def test_equals_scipys_exact_permutation_test(eighths):
    differences = np.array(eighths) / 8  # exact in binary: scipy takes no tie with a sum of rounding errors
    test = stats.permutation_test((differences,), np.sum, permutation_type="samples", n_resamples=np.inf, axis=0)
    assert sign_flip_p(differences) == pytest.approx(min(1.0, test.pvalue))


# Halving the smallest number there is makes a tie of it.
scalable = st.floats(-1, 1).filter(lambda value: value == 0 or abs(value) > 1e-300)


@given(st.lists(scalable, min_size=1, max_size=9), st.integers(-3, 3))
def test_neither_the_unit_nor_the_names_of_the_arms_matter(differences, exponent):
    p = sign_flip_p(differences)
    assert sign_flip_p([-value * 2.0**exponent for value in differences]) == p
    assert smallest_sign_flip_p(len(differences)) <= p <= 1


def test_enumeration_and_draws_agree_across_the_border():
    row = np.random.default_rng(0).normal(0.4, 1, 20)
    exact, drawn = sign_flip_p(row), sign_flip_p([*row, 0.0])  # a zero pair changes no p
    assert drawn == pytest.approx(exact, abs=3 * np.sqrt(exact * (1 - exact) / 100_000))


def test_draws_repeat_by_seed_and_count_the_observed_signs():
    row = np.ones(40)  # no draw of all-equal signs is to be expected
    assert sign_flip_p(row, draws=999, seed=1) == sign_flip_p(row, draws=999, seed=1) == 1 / 1000


def test_the_interval_leaves_out_exactly_what_the_test_rejects():
    random = np.random.default_rng(1)
    for pairs in (6, 8, 11):
        row = random.normal(size=pairs) - 3.0 * (random.random(pairs) < 0.2)
        low, high, _ = sign_flip_interval(row)
        assert sign_flip_p(row - (low - 1e-6)) <= 0.05 < sign_flip_p(row - (low + 1e-6))
        assert sign_flip_p(row - (high + 1e-6)) <= 0.05 < sign_flip_p(row - (high - 1e-6))


def test_above_twenty_pairs_subsets_are_drawn_and_the_interval_is_about_students():
    row = np.random.default_rng(0).normal(size=40)
    found, students = sign_flip_interval(row), stats.t.interval(0.95, 39, row.mean(), row.std(ddof=1) / 40**0.5)
    assert found[:2] == pytest.approx(students, abs=0.05)


def test_too_few_pairs_have_no_interval():
    with pytest.raises(ValueError, match=r"5 pairs have no sign-flip interval of level 0\.95\. Run more seeds"):
        sign_flip_interval([1.0, 2.0, 3.0, 4.0, 5.0])
