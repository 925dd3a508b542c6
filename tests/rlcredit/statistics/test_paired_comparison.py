import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlcredit.statistics.adjusted_p import holm_adjusted_p
from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.paired_comparison import (
    bounded_paired_test,
    conclude_paired_family,
    seeds_to_decide,
    sign_flip_paired_test,
    student_paired_test,
)
from rlcredit.statistics.power import t_test_power
from rlcredit.statistics.t_test import paired_t_test
from tests.rlcredit.statistics.simulated_runs import conclude_one

differences = st.lists(st.integers(-40, 40), min_size=2, max_size=12).map(lambda points: np.array(points) / 512)


def around(mean, deviation, seeds):
    """Return differences with exactly this mean and standard deviation."""
    row = np.arange(seeds) - (seeds - 1) / 2
    return mean + deviation * row / row.std(ddof=1)


@pytest.mark.parametrize(
    ("mean", "deviation", "said"),
    [
        (0.03, 0.01, "better"),
        (-0.03, 0.01, "worse"),
        (0.0, 0.005, "equivalent within 1 pp"),
        (0.0, 0.03, "undecided: a new campaign needs 120 seeds"),
        (0.015, 0.02, "undecided: a new campaign needs 55 seeds"),
    ],
)
def test_eight_seeds_and_a_margin_of_one_point(mean, deviation, said):
    assert conclude_one(around(mean, deviation, 8), margin=0.01) == said


def test_a_real_difference_within_the_margin_is_equivalent():
    row = around(0.004, 0.003, 8)
    assert paired_t_test(row).p < 0.01
    assert conclude_one(row, margin=0.01) == "equivalent within 1 pp"
    assert conclude_one(row, margin=0.003) == "better"


def test_margins_are_printed_in_points():
    assert conclude_one([0.0, 0.0], margin=0.005) == "equivalent within 0.5 pp"


def test_a_family_is_corrected_before_it_is_judged():
    family = [student_paired_test(around(mean, 0.01, 8), margin=0.01) for mean in (0.009, 0.012, 0.0, 0.03)]
    alone = [conclude_paired_family([each], margin=0.01)[0] for each in family]
    judged = conclude_paired_family(family, margin=0.01)
    assert [each.words for each in alone] == ["better", "better", "equivalent within 1 pp", "better"]
    assert [each.words for each in judged] == [
        "undecided: a new campaign needs 26 seeds",
        "better",
        "undecided: a new campaign needs 26 seeds",
        "better",
    ]
    assert [each.p for each in judged] == holm_adjusted_p([each.test.p for each in family]).tolist()
    same = [equivalence_test(each.test, margin=0.01).p for each in family]
    assert [each.p_equivalence for each in judged] == holm_adjusted_p(same).tolist()


def test_a_member_without_a_test_counts_and_has_no_conclusion():
    tested = student_paired_test(around(0.03, 0.03, 8), margin=0.01)
    none, judged = conclude_paired_family([None, tested], margin=0.01)
    assert none is None
    assert judged.p == 2 * tested.p


def test_where_runs_collapsed_signs_decide_and_nothing_is_equivalent():
    row = [0.01, 0.01, 0.01, 0.01, 0.01, 0.5]
    tested = sign_flip_paired_test(row)
    assert (tested.p, tested.p_equivalence) == (2 / 2**6, 1.0)
    students = paired_t_test(row)
    assert (tested.test.difference, tested.test.standard_error) == (students.difference, students.standard_error)
    # Of six pairs the sign-flip test leaves out nothing between the smallest and the largest; Student's ends at 0.30.
    assert tested.test.interval == (students.interval.low, 0.5, 0.95)


def test_where_no_data_of_so_many_pairs_could_decide_it_is_said():
    tests = [sign_flip_paired_test([-0.5, 0.01, 0.01, -0.02, 0.01, 0.0])] * 2
    tests += [student_paired_test(around(0.5, 0.01, 6), margin=0.01)]
    # Six pairs reach 2 / 2^6 = 0.031; once the third is better, 0.05 / 2 is left to each of the two others.
    said = [each.words for each in conclude_paired_family(tests, margin=0.01)]
    assert said == [*["could not decide: 6 pairs reach p = 0.031 at best, and 0.025 was needed"] * 2, "better"]
    assert conclude_paired_family(tests[1:], margin=0.01)[0].words.startswith("undecided")


def test_an_undecided_comparison_knows_the_difference_it_would_have_found():
    family = [student_paired_test(around(mean, 0.01, 8), margin=0.002) for mean in (0.002, 0.003, 0.05)]
    *open_ones, better = conclude_paired_family(family, margin=0.002)
    assert better.detectable is None
    for each in open_ones:  # one of three is decided, and half of the level is left to each of the others
        assert t_test_power(each.detectable / 0.01, 8, conditions=1, alpha=0.025) == pytest.approx(0.8)


@pytest.mark.parametrize(("difference", "p", "p_equivalence"), [(0.0, 1.0, 0.75**6), (0.125, 1 / 32, 0.875**6)])
def test_differences_that_are_all_equal_are_tested_exactly(difference, p, p_equivalence):
    tested = bounded_paired_test([difference] * 6, margin=0.25)
    assert (tested.p, tested.p_equivalence) == (p, p_equivalence)
    assert tested.test.interval.high == pytest.approx(difference + 1 - 0.025 ** (1 / 6))
    assert bounded_paired_test([difference, 0.5], margin=0.25) == student_paired_test([difference, 0.5], margin=0.25)


@settings(deadline=None, max_examples=50)
@given(differences, st.floats(0.001, 0.2), st.sampled_from([0.01, 0.05, 0.1]))
def test_more_seeds_are_asked_for_than_there_are(row, margin, alpha):
    said = conclude_one(row, margin, alpha=alpha)
    if said.startswith("undecided"):
        needed = int(said.split()[-2])
        assert needed == max(len(row) + 1, seeds_to_decide(row.std(ddof=1), margin, alpha))
        assert seeds_to_decide(row.std(ddof=1), margin, alpha) > len(row)


@settings(deadline=None, max_examples=50)
@given(differences, st.floats(0.001, 0.2))
def test_exchanging_the_arms_exchanges_better_and_worse(row, margin):
    exchanged = {"better": "worse", "worse": "better"}
    said = conclude_one(row, margin)
    assert conclude_one(-row, margin) == exchanged.get(said, said)


@settings(deadline=None, max_examples=50)
@given(st.floats(-0.1, 0.1), st.floats(0.001, 0.05))
def test_with_so_many_seeds_no_difference_is_undecided(mean, deviation):
    seeds = seeds_to_decide(deviation, margin=0.02)
    if seeds < 3000:
        assert not conclude_one(around(mean, deviation, seeds), margin=0.02).startswith("undecided")


@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_so_many_seeds_have_a_power_of_about_ninety_five_percent_either_way(ratio):
    seeds = seeds_to_decide(ratio, margin=1.0)
    assert t_test_power(1 / ratio, seeds, conditions=1) == pytest.approx(0.95, abs=0.035)
    rows = np.random.default_rng(0).normal(0, ratio, (2000, seeds))
    shown = [equivalence_test(paired_t_test(row), margin=1.0).p <= 0.05 for row in rows]
    assert np.mean(shown) == pytest.approx(0.95, abs=0.035)


def test_many_seeds_need_thirteen_squared_ratios():
    assert seeds_to_decide(1.0, margin=0.01) == pytest.approx((1.959964 + 1.644854) ** 2 * 1e4, rel=1e-4)
    assert math.isclose((1.959964 + 1.644854) ** 2, 12.99, abs_tol=0.01)
