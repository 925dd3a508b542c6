"""Comparisons of policies with the first of them, paired by question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlcredit.evaluation.evaluation_folder import PolicyTask
from rlcredit.evaluation.policy_accuracy import PRIMARY_ACCURACY, PolicyAccuracy
from rlcredit.statistics.paired_comparison import PairedTest, bounded_paired_test, conclude_paired_family
from rlcredit.statistics.t_test import TTest

REMEDY_WORDS = "about {:,} questions would decide"
"""What is said where a difference stays undecided."""

EVALUATION_LEVEL = 0.05
"""Significance level of every verdict."""


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
    accuracies: Mapping[PolicyTask, PolicyAccuracy], policies: Sequence[str], margin: float
) -> list[PolicyComparison]:
    """Compare every policy with the first on every task.

    Args:
        accuracies: Accuracy by policy and task, on the same questions.
        policies: Names of the policies; the first is the baseline.
        margin: Difference of pass@1 that would not matter, in proportions.

    """
    baseline, *candidates = policies
    tasks = list(dict.fromkeys(place.task for place in accuracies))
    pairs = [(task, candidate) for task in tasks for candidate in candidates]
    families = [
        _test_accuracies(accuracies[PolicyTask(candidate, task)], accuracies[PolicyTask(baseline, task)], margin)
        for task, candidate in pairs
    ]
    conclusions = conclude_paired_family(
        [tests[PRIMARY_ACCURACY] for tests in families], margin, EVALUATION_LEVEL, REMEDY_WORDS
    )
    return [
        PolicyComparison(
            task,
            candidate,
            baseline,
            {name: paired_test.test for name, paired_test in tests.items()},
            conclusion.p,
            conclusion.p_equivalence,
            conclusion.words,
        )
        for (task, candidate), tests, conclusion in zip(pairs, families, conclusions, strict=True)
        if conclusion
    ]


def _test_accuracies(policy: PolicyAccuracy, baseline: PolicyAccuracy, margin: float) -> dict[str, PairedTest]:
    """Test the difference of every accuracy over the questions, policy minus baseline."""
    return {
        name: bounded_paired_test(values - baseline.accuracy[name], margin) for name, values in policy.accuracy.items()
    }
