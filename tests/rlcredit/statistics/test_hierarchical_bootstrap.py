import numpy as np
import pytest

from rlcredit.statistics.hierarchical_bootstrap import hierarchical_interval
from rlcredit.statistics.t_test import paired_t_test


def test_where_only_runs_differ_it_is_about_the_t_interval_of_runs():
    runs = np.random.default_rng(0).normal(size=8)
    low, high, _ = hierarchical_interval(np.broadcast_to(runs[:, None, None], (8, 50, 2)))
    students = paired_t_test(runs).interval
    assert high - low == pytest.approx(students.high - students.low, rel=0.05)


def test_where_only_prompts_differ_more_runs_do_not_narrow_it():
    prompts = np.random.default_rng(0).normal(size=200)
    widths = []
    for runs in (6, 60):
        low, high, _ = hierarchical_interval(np.broadcast_to(prompts[None, :, None], (runs, 200, 1)))
        widths.append(high - low)
    students = paired_t_test(prompts).interval
    assert widths == pytest.approx([students.high - students.low] * 2, rel=0.05)


def test_by_hand_runs_and_prompts_add_their_variances():
    runs, prompts = np.array([-1.0, 1.0] * 10), np.array([-2.0, 2.0] * 20)
    low, high, _ = hierarchical_interval((runs[:, None] + prompts)[..., None], draws=20_000)
    error = np.sqrt(20 / 19 / 20 + 4 * 40 / 39 / 40)  # s^2 / n of each
    assert high - low == pytest.approx(2 * 2.003 * error, rel=0.03)  # t of about 56 degrees of freedom


def test_samples_count_through_their_mean_only():
    outcomes = np.random.default_rng(0).random((6, 30, 4))
    means = outcomes.mean(-1, keepdims=True)
    assert hierarchical_interval(outcomes) == pytest.approx(hierarchical_interval(means))


def test_perfect_verdicts_have_a_point():
    assert hierarchical_interval(np.ones((6, 10, 2))) == (1.0, 1.0, 0.95)


def test_memory_is_bounded_without_changing_the_number_of_draws():
    outcomes = np.random.default_rng(0).random((6, 3000, 1)) < 0.9
    low, high, _ = hierarchical_interval(outcomes, draws=1000)  # three blocks of draws
    assert low < outcomes.mean() < high


@pytest.mark.parametrize("shape", [(5, 100, 2), (8, 100)])
def test_five_runs_or_a_table_are_refused(shape):
    with pytest.raises(ValueError, match=r"\(runs, prompts, samples\) with at least 6 runs and prompts, got shape"):
        hierarchical_interval(np.ones(shape))


def test_a_missing_verdict_is_refused():
    with pytest.raises(ValueError, match="needs finite outcomes"):
        hierarchical_interval(np.full((6, 6, 1), np.nan))
