"""Policies against the first of them, paired by question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlcredit.evaluation.folder import Place
from rlcredit.evaluation.scores import FIRST, Scores
from rlcredit.statistics.adjusted_p import holm
from rlcredit.statistics.equivalence import equivalence
from rlcredit.statistics.t_test import TTest, paired_t
from rlcredit.statistics.verdict import verdict

REMEDY = "about {:,} questions would decide"
"""What is said where a difference stays undecided."""


@dataclass(frozen=True)
class Comparison:
    """What the same questions say of two policies.

    Args:
        task: whose questions.
        policy: that is compared.
        baseline: with which.
        differences: of every accuracy, policy minus baseline, with Student's interval over questions.
        p: of no difference of pass@1, corrected by Holm for all comparisons of the evaluation.
        p_equivalence: of one beyond the margin, likewise.
        verdict: in words.

    """

    task: str
    policy: str
    baseline: str
    differences: Mapping[str, TTest]
    p: float
    p_equivalence: float
    verdict: str

    def plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        differences = {
            name: {"mean": test.difference, "low": test.interval.low, "high": test.interval.high}
            for name, test in self.differences.items()
        }
        plain = {name: getattr(self, name) for name in ("task", "policy", "baseline", "verdict", "p", "p_equivalence")}
        return {**plain, "differences": differences}


def comparisons(measured: Mapping[Place, Scores], policies: Sequence[str], margin: float) -> list[Comparison]:
    """Compare every policy with the first on every task.

    Args:
        measured: by policy and task, on the same questions.
        policies: the first is the baseline.
        margin: difference of pass@1 that would not matter, in proportions.

    """
    first, *others = policies
    tasks = list(dict.fromkeys(place.task for place in measured))
    pairs = [(task, other) for task in tasks for other in others]
    differences = [_differences(measured[Place(other, task)], measured[Place(first, task)]) for task, other in pairs]
    tested = [{name: paired_t(values) for name, values in one.items()} for one in differences]
    ps = holm([tests[FIRST].p for tests in tested])
    equivalent = holm([equivalence(tests[FIRST], margin).p for tests in tested])
    compared = []
    for (task, other), values, tests, p, same in zip(pairs, differences, tested, ps, equivalent, strict=True):
        said = verdict(values[FIRST], margin, p=p, p_equivalence=same, family=len(pairs), remedy=REMEDY)
        compared.append(Comparison(task, other, first, tests, float(p), float(same), said))
    return compared


def _differences(policy: Scores, baseline: Scores) -> dict[str, NDArray[np.float64]]:
    return {name: values - baseline.accuracy[name] for name, values in policy.accuracy.items()}
