"""Intervals by leaving one out."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from rlcredit.statistics.intervals import jackknife_interval, share_interval
from tests.slow_cases import mark_others_slow


def test_that_of_a_mean_is_students():
    values = np.random.default_rng(0).normal(size=9)
    without = np.array([np.delete(values, place).mean() for place in range(len(values))])
    found = jackknife_interval(values.mean(), without)
    assert found[:2] == pytest.approx(tuple(stats.ttest_1samp(values, 0).confidence_interval(0.95)))


def test_an_estimate_that_no_part_changes_is_a_point():
    assert jackknife_interval(0.3, np.full(5, 0.3))[:2] == (0.3, 0.3)


def test_one_answer_per_question_gives_wilsons_interval():
    values = [1.0] * 300 + [0.0] * 700
    low, high, _ = share_interval(values)
    # At n - 1 answers and with a quantile of t: the difference from Wilson's own is in the fourth place.
    assert (low, high) == pytest.approx(proportion_confint(300, 1000, method="wilson"), abs=2e-4)


def test_it_tends_to_students_interval_where_there_are_many_questions():
    values = np.random.default_rng(0).binomial(32, 0.4, 20_000) / 32
    student = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    assert share_interval(values)[:2] == pytest.approx(student, abs=1e-5)


@pytest.mark.parametrize(("value", "end"), [(0.0, 0), (1.0, 1)])
def test_equal_values_give_no_point_and_no_end_outside(value, end):
    interval = share_interval([value] * 30)
    reach = 2.0452**2 / (30 + 2.0452**2)  # t of 29 degrees of freedom
    assert interval[end] == value
    assert abs(interval[1 - end] - value) == pytest.approx(reach, abs=1e-4)


def test_more_confidence_is_wider():
    values = [0.1, 0.5, 0.9, 0.3, 0.6]
    narrow, wide = share_interval(values, 0.9), share_interval(values, 0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize("wrong", [[0.5], [0.5, 1.5], [0.5, -0.1], [0.5, float("nan")]])
def test_what_is_no_row_of_shares_is_refused(wrong):
    with pytest.raises(ValueError, match="An interval of accuracy needs"):
        share_interval(wrong)


def coverage(questions, answers, shape, random):
    """Return how often intervals hold the truth, over 3000 policies with these chances of a right answer."""
    truth = shape[0] / sum(shape)
    chances = random.beta(*shape, (3000, questions))
    studies = random.binomial(answers, chances) / answers
    return np.mean([low <= truth <= high for low, high, _ in map(share_interval, studies)])


@pytest.mark.parametrize("questions", mark_others_slow([30, 128, 500]))
@pytest.mark.parametrize("shape", [(0.3, 0.3), (2, 1), (20, 2), (0.1, 0.9)], ids=str)
@pytest.mark.parametrize("answers", [1, 4, 32])
def test_an_interval_holds_the_truth_nineteen_times_of_twenty(questions, answers, shape):
    held = coverage(questions, answers, shape, np.random.default_rng(0))
    # Three standard errors are 0.012. Thirty questions of which few are ever solved are the hardest.
    assert 0.92 <= held <= 0.98


def test_where_almost_nothing_is_solved_and_unevenly_it_holds_less_often():
    random = np.random.default_rng(0)
    assert coverage(30, 32, (0.05, 2), random) == pytest.approx(0.85, abs=0.02)  # Student's: 0.78
    assert coverage(500, 32, (0.05, 2), random) == pytest.approx(0.945, abs=0.015)
