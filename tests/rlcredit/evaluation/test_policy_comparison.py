"""Pairs of questions: by hand, corrected for all rows, and as often right as they say."""

import numpy as np
import pytest
from scipy import stats

from rlcredit.evaluation.evaluation_folder import PolicyTask
from rlcredit.evaluation.policy_accuracy import PolicyAccuracy
from rlcredit.evaluation.policy_comparison import compare_policies


def measured(**accuracies):
    """Return scores by policy and task; names are ``policy_task``."""
    return {
        PolicyTask(*name.split("_")): PolicyAccuracy({"pass_at_1": np.array(values)}, {})
        for name, values in accuracies.items()
    }


def test_a_difference_is_paired_by_question():
    base, other = [0.0, 0.5, 1.0, 0.25], [0.25, 0.75, 1.0, 0.75]
    (one,) = compare_policies(measured(base_sums=base, other_sums=other), ["base", "other"], margin=0.01)
    expected = stats.ttest_rel(other, base)
    test = one.differences["pass_at_1"]
    assert (one.task, one.policy, one.baseline) == ("sums", "other", "base")
    assert test.difference == pytest.approx(0.25)
    assert one.p == pytest.approx(expected.pvalue)
    assert test.interval[:2] == pytest.approx(tuple(expected.confidence_interval()))
    assert one.verdict.startswith("undecided: about ")
    assert one.verdict.endswith(" questions would decide")


def test_all_rows_are_corrected_together():
    random = np.random.default_rng(0)
    names = [f"{policy}_{task}" for task in ("sums", "words") for policy in ("base", "one", "two")]
    values = {name: random.uniform(size=20) for name in names}
    found = compare_policies(measured(**values), ["base", "one", "two"], margin=0.01)
    assert [(each.task, each.policy) for each in found] == [
        ("sums", "one"),
        ("sums", "two"),
        ("words", "one"),
        ("words", "two"),
    ]
    raw = sorted(each.differences["pass_at_1"].p for each in found)
    assert min(each.p for each in found) == pytest.approx(min(1, 4 * raw[0]))


@pytest.mark.parametrize(
    ("shift", "margin", "said"), [(0.1, 0.01, "better"), (-0.1, 0.01, "worse"), (0.0, 0.05, "equivalent within 5 pp")]
)
def test_verdicts(shift, margin, said):
    base = np.random.default_rng(0).uniform(0.2, 0.8, 200)
    noise = 0.02 * np.random.default_rng(1).normal(size=200)
    (one,) = compare_policies(measured(base_t=base, arm_t=base + shift + noise), ["base", "arm"], margin)
    assert one.verdict == said


UNDECIDED = "undecided: about 299 questions would decide"  # 0.99 ** 298 = 0.0500, 0.99 ** 299 = 0.0495


@pytest.mark.parametrize(("questions", "said"), [(3, UNDECIDED), (298, UNDECIDED), (299, "equivalent within 1 pp")])
def test_answers_that_are_all_alike_decide_as_far_as_their_number_goes(questions, said):
    same = np.arange(questions) % 2
    (one,) = compare_policies(measured(base_t=same, arm_t=same), ["base", "arm"], 0.01)
    assert one.verdict == said
    assert one.p == 1
    low, high, _ = one.differences["pass_at_1"].interval
    assert -low == high == pytest.approx(1 - 0.025 ** (1 / questions))


@pytest.mark.parametrize(("questions", "p"), [(2, 0.5), (6, 0.03125)])
def test_two_questions_that_are_both_better_are_no_proof(questions, p):
    base, arm = np.zeros(questions), np.ones(questions)
    (one,) = compare_policies(measured(base_t=base, arm_t=arm), ["base", "arm"], 0.01)
    assert one.p == p
    assert (one.verdict == "better") == (p < 0.05)


@pytest.mark.parametrize(("questions", "answers"), [(30, 1), (128, 4), (512, 4)])
def test_intervals_of_differences_hold_nineteen_times_of_twenty_and_verdicts_err_once(questions, answers):
    random, held, erred = np.random.default_rng(0), [], []
    for _ in range(1000):
        chances = random.beta(0.6, 0.6, questions)  # of both policies, on a question
        moved = np.clip(chances + random.normal(0, 0.1, (2, questions)), 0, 1)  # different, and no better on average
        base, arm = random.binomial(answers, moved) / answers
        (one,) = compare_policies(measured(base_t=base, arm_t=arm), ["base", "arm"], margin=0.005)
        low, high, _ = one.differences["pass_at_1"].interval
        held.append(low <= 0 <= high)
        erred.append(one.verdict in ("better", "worse"))
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)
    assert np.mean(erred) <= 0.05 + 3 * 0.0069
