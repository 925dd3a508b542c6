"""Comparisons of policies with the first of them, paired by question."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlcredit.evaluation.evaluation_folder import PolicyTask
from rlcredit.evaluation.policy_accuracy import FIRST, PolicyAccuracy
from rlcredit.statistics.adjusted_p import holm_adjusted_p
from rlcredit.statistics.conclusion import state_conclusion
from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.intervals import Interval
from rlcredit.statistics.t_test import TTest, paired_t_test

REMEDY = "about {:,} questions would decide"
"""What is said where a difference stays undecided."""

LEVEL = 0.05
"""Of each verdict."""


@dataclass(frozen=True)
class PolicyComparison:
    """Comparison of two policies on the same questions.

    Args:
        task: Name of the task that asked the questions.
        policy: Name of the policy that is compared.
        baseline: Name of the policy that it is compared with.
        differences: Difference of every accuracy, policy minus baseline, with Student's interval over questions.
        p: P-value of no difference in pass@1, corrected by Holm for all comparisons of the evaluation.
        p_equivalence: P-value of a difference in pass@1 beyond the margin, corrected in the same way.
        verdict: Conclusion in words.

    """

    task: str
    policy: str
    baseline: str
    differences: Mapping[str, TTest]
    p: float
    p_equivalence: float
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison for JSON."""
        differences = {
            name: {"mean": test.difference, "low": test.interval.low, "high": test.interval.high}
            for name, test in self.differences.items()
        }
        plain = {name: getattr(self, name) for name in ("task", "policy", "baseline", "verdict", "p", "p_equivalence")}
        return {**plain, "differences": differences}


def compare_policies(
    measured: Mapping[PolicyTask, PolicyAccuracy], policies: Sequence[str], margin: float
) -> list[PolicyComparison]:
    """Compare every policy with the first on every task.

    Args:
        measured: Accuracy by policy and task, on the same questions.
        policies: Names of the policies; the first is the baseline.
        margin: Difference of pass@1 that would not matter, in proportions.

    """
    first, *others = policies
    tasks = list(dict.fromkeys(place.task for place in measured))
    pairs = [(task, other) for task in tasks for other in others]
    differences = [
        _accuracy_differences(measured[PolicyTask(other, task)], measured[PolicyTask(first, task)])
        for task, other in pairs
    ]
    tested = [{name: _test_paired_differences(values) for name, values in one.items()} for one in differences]
    ps = holm_adjusted_p([tests[FIRST].p for tests in tested])
    equivalent = holm_adjusted_p([_paired_equivalence_p(tests[FIRST], margin) for tests in tested])
    compared = []
    for (task, other), values, tests, p, same in zip(pairs, differences, tested, ps, equivalent, strict=True):
        remedy = (
            REMEDY if tests[FIRST].standard_error else REMEDY.format(_questions_to_decide(margin, LEVEL / len(pairs)))
        )
        said = state_conclusion(
            values[FIRST], margin, p=p, p_equivalence=same, alpha=LEVEL, family=len(pairs), remedy=remedy
        )
        compared.append(PolicyComparison(task, other, first, tests, float(p), float(same), said))
    return compared


def _test_paired_differences(values: NDArray[np.float64]) -> TTest:
    """Return the paired test; where all differences are equal an exact one, since Student's would have no error.

    If more than a share x of all questions had another difference, n questions without one would come with a chance
    below ``(1 - x) ** n``. A question is taken to move the mean by one at most.
    """
    test = paired_t_test(values)
    if test.standard_error:
        return test
    reach = 1 - ((1 - test.interval.level) / 2) ** (1 / len(values))
    interval = Interval(max(-1.0, test.difference - reach), min(1.0, test.difference + reach), test.interval.level)
    return replace(test, p=2.0 ** (1 - len(values)) if test.difference else 1.0, interval=interval)


def _paired_equivalence_p(test: TTest, margin: float) -> float:
    """Return the p-value of such differences if the true one lay beyond the margin.

    Differences that are all equal are bounded as in :func:`_test_paired_differences`.
    """
    if test.standard_error:
        return equivalence_test(test, margin).p
    return (1 - max(0.0, margin - abs(test.difference))) ** (test.df + 1)


def _questions_to_decide(margin: float, level: float) -> int:
    """Return how many questions without any difference show that there is none beyond the margin."""
    return math.ceil(math.log(level) / math.log1p(-margin))


def _accuracy_differences(policy: PolicyAccuracy, baseline: PolicyAccuracy) -> dict[str, NDArray[np.float64]]:
    return {name: values - baseline.accuracy[name] for name, values in policy.accuracy.items()}
