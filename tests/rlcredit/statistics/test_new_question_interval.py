import numpy as np
import pytest
from scipy import stats

from rlcredit.statistics.intervals import Interval
from rlcredit.statistics.new_question_interval import new_question_interval
from rlcredit.statistics.t_test import paired_t_test


def test_where_only_runs_differ_it_is_the_t_interval_of_runs():
    runs = np.random.default_rng(0).normal(size=8)
    found = new_question_interval(np.broadcast_to(runs[:, None, None], (8, 50, 2)))
    assert found == pytest.approx(paired_t_test(runs).interval)


def test_where_only_questions_differ_more_runs_do_not_narrow_it():
    questions = np.random.default_rng(0).normal(size=200)
    found = [new_question_interval(np.broadcast_to(questions[None, :, None], (runs, 200, 1))) for runs in (6, 60)]
    assert found == [pytest.approx(paired_t_test(questions).interval)] * 2


def test_by_hand_runs_and_questions_add_the_squares_of_their_reaches():
    runs, questions = np.array([-1.0, 1.0] * 10), np.array([-2.0, 2.0] * 20)
    low, high, _ = new_question_interval((runs[:, None] + questions)[..., None])
    # s^2 / n of the runs: 20/19/20, and t of 19 degrees of freedom is 2.0930; of the questions 4 x 40/39/40, and 2.0227
    reach = np.sqrt(2.0930**2 / 19 + 2.0227**2 * 4 / 39)
    assert (low, high) == pytest.approx((-reach, reach), rel=1e-4)


@pytest.mark.parametrize("seed", range(40))
def test_it_is_never_narrower_than_the_interval_for_these_questions(seed):
    random = np.random.default_rng(seed)
    runs = random.exponential(random.choice([0.01, 0.3]), size=(8, 1)) * random.choice([-1, 1])
    runs[0] -= random.choice([0.0, 0.6])  # one of them collapsed
    chances = (0.8 + runs + 0.2 * random.normal(size=64)).clip(0, 1)
    outcomes = random.binomial(4, chances)[..., None] / 4
    fixed = paired_t_test(outcomes.mean((1, 2))).interval
    wider = Interval(fixed.low - 0.1, fixed.high, 0.95)
    for inner in (fixed, wider):
        outer = new_question_interval(outcomes, inner)
        assert outer.low <= inner.low + 1e-12
        assert outer.high >= inner.high - 1e-12
    assert new_question_interval(outcomes) == pytest.approx(new_question_interval(outcomes, fixed))


def test_samples_count_through_their_mean_only():
    outcomes = np.random.default_rng(0).random((6, 30, 4))
    means = outcomes.mean(-1, keepdims=True)
    assert new_question_interval(outcomes) == pytest.approx(new_question_interval(means))


def test_perfect_verdicts_have_a_point():
    assert new_question_interval(np.ones((6, 10, 2))) == (1.0, 1.0, 0.95)


@pytest.mark.slow
def test_runs_that_are_skewed_are_held_as_often_as_is_said():
    random, held = np.random.default_rng(0), []
    for _ in range(1000):
        sides = [random.normal(size=64) + 0.4 * (1 - random.exponential(size=(8, 1))) for _ in range(2)]
        common = 1.5 * random.normal(size=64)
        right = [random.binomial(4, stats.logistic.cdf(1.5 + common + side)) / 4 for side in sides]
        low, high, _ = new_question_interval((right[0] - right[1])[..., None])
        held.append(low <= 0 <= high)
    assert 0.94 <= np.mean(held) <= 0.99


@pytest.mark.parametrize("shape", [(5, 100, 2), (8, 100)])
def test_five_runs_or_a_table_are_refused(shape):
    with pytest.raises(ValueError, match=r"\(runs, questions, samples\) with at least 6 runs and questions, got shape"):
        new_question_interval(np.ones(shape))


def test_a_missing_verdict_is_refused():
    with pytest.raises(ValueError, match="needs finite outcomes"):
        new_question_interval(np.full((6, 6, 1), np.nan))
