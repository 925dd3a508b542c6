"""Policies against the first of them, paired by question."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlcredit.evaluation.folder import Place
from rlcredit.evaluation.scores import FIRST, Scores
from rlcredit.statistics.adjusted_p import holm
from rlcredit.statistics.equivalence import equivalence
from rlcredit.statistics.interval import Interval
from rlcredit.statistics.t_test import TTest, paired_t
from rlcredit.statistics.verdict import verdict

REMEDY = "about {:,} questions would decide"
"""What is said where a difference stays undecided."""

LEVEL = 0.05
"""Of each verdict."""


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
    tested = [{name: _tested(values) for name, values in one.items()} for one in differences]
    ps = holm([tests[FIRST].p for tests in tested])
    equivalent = holm([_p_equivalence(tests[FIRST], margin) for tests in tested])
    compared = []
    for (task, other), values, tests, p, same in zip(pairs, differences, tested, ps, equivalent, strict=True):
        remedy = REMEDY if tests[FIRST].standard_error else REMEDY.format(_enough(margin, LEVEL / len(pairs)))
        said = verdict(values[FIRST], margin, p=p, p_equivalence=same, alpha=LEVEL, family=len(pairs), remedy=remedy)
        compared.append(Comparison(task, other, first, tests, float(p), float(same), said))
    return compared


def _tested(values: NDArray[np.float64]) -> TTest:
    """Return the paired test; of differences that are all alike an exact one, since Student's would know no doubt.

    If more than a share x of all questions had another difference, n questions without one would come with a chance
    below ``(1 - x) ** n``. A question is taken to move the mean by one at most.
    """
    test = paired_t(values)
    if test.standard_error:
        return test
    reach = 1 - ((1 - test.interval.level) / 2) ** (1 / len(values))
    interval = Interval(max(-1.0, test.difference - reach), min(1.0, test.difference + reach), test.interval.level)
    return replace(test, p=2.0 ** (1 - len(values)) if test.difference else 1.0, interval=interval)


def _p_equivalence(test: TTest, margin: float) -> float:
    """Return the chance of such differences if the true one lay beyond the margin; see :func:`_tested`."""
    if test.standard_error:
        return equivalence(test, margin).p
    return (1 - max(0.0, margin - abs(test.difference))) ** (test.df + 1)


def _enough(margin: float, level: float) -> int:
    """Return how many questions without a difference show that there is none beyond the margin."""
    return math.ceil(math.log(level) / math.log1p(-margin))


def _differences(policy: Scores, baseline: Scores) -> dict[str, NDArray[np.float64]]:
    return {name: values - baseline.accuracy[name] for name, values in policy.accuracy.items()}
