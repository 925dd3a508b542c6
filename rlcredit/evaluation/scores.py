"""From the answers of one policy to one task: accuracy per question, and means with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlcredit.evaluation.folder import Answer
from rlcredit.evaluation.votes import RIGHT, count_answer_votes
from rlcredit.statistics.interval import Interval
from rlcredit.statistics.majority_at_k import majority_at_k
from rlcredit.statistics.mean_of_shares import share_interval
from rlcredit.statistics.pass_at_k import pass_at_k
from rlcredit.verification.verifiers import Verdict

FIRST = "pass_at_1"
"""What policies are compared by: the mean accuracy of a completion, also called avg@n."""


@dataclass(frozen=True)
class PolicyAccuracy:
    """What one policy has shown on one task.

    Args:
        accuracy: per question, by name: ``pass_at_k``, and ``maj_at_k`` from 4 on, each of shape ``(Q,)``.
        means: of completions: ``tokens``, ``entropy`` (per token, nats), and the shares that were ``truncated``,
            ``unjudged``, or had ``no_answer`` where the task tells.
        curve: pass@k for every k from 1 to the largest that was asked for.

    """

    accuracy: Mapping[str, NDArray[np.float64]]
    means: Mapping[str, float]
    curve: Sequence[float] = ()

    def mean(self, name: str) -> float:
        """Return an accuracy over all questions."""
        return float(self.accuracy[name].mean())

    def interval(self, name: str) -> Interval:
        """Return where it would lie for other questions of the kind, in 95 % of cases."""
        return share_interval(self.accuracy[name])

    def to_dict(self) -> dict[str, Any]:
        """Return every number by name, for JSON."""
        intervals = {name: self.interval(name) for name in self.accuracy}
        accuracies = {
            name: {"mean": self.mean(name), "low": interval.low, "high": interval.high}
            for name, interval in intervals.items()
        }
        return {**accuracies, **self.means, "pass_at_k": list(self.curve)}


def measure_policy_accuracy(answers: Sequence[Answer], completions: int, ks: Sequence[int]) -> PolicyAccuracy:
    """Score answers; what could not be judged is not right, as in validation.

    Args:
        answers: those of a question together, n each.
        completions: n.
        ks: of pass@k and maj@k, each at most n.

    """
    counted = [
        count_answer_votes(answers[start : start + completions]) for start in range(0, len(answers), completions)
    ]
    right = np.array([each for each, _ in counted])
    passes = [pass_at_k(completions, right, k) for k in range(1, max(ks) + 1)]
    passed = {f"pass_at_{k}": passes[k - 1] for k in ks}
    voted = {
        f"maj_at_{k}": np.array([majority_at_k(each, others, completions, k) for each, others in counted])
        for k in ks
        if k > 2  # a vote of two is one of them
    }
    assert right.sum() == sum(answer["verdict"] == RIGHT for answer in answers)
    return PolicyAccuracy({**passed, **voted}, _average_completions(answers), [float(each.mean()) for each in passes])


def _average_completions(answers: Sequence[Answer]) -> dict[str, float]:
    tokens = np.array([answer["tokens"] for answer in answers])
    entropy = np.array([answer["entropy"] for answer in answers])
    shares = {
        name: float(np.mean([answer["verdict"] == name for answer in answers]))
        for name in (verdict.name.lower() for verdict in Verdict)
        if name not in ("right", "wrong")
    }
    return {
        "tokens": float(tokens.mean()),
        "entropy": float((entropy * tokens).sum() / tokens.sum()),
        "truncated": float(np.mean([answer["truncated"] for answer in answers])),
        **shares,
    }
