"""The accuracy of one policy on one task: votes, accuracy per question, and means with intervals."""

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlcredit.evaluation.evaluation_folder import Answer
from rlcredit.statistics.accuracy_at_k import majority_at_k, pass_at_k
from rlcredit.statistics.intervals import Interval, share_interval
from rlcredit.verification.mathematics.numbers import read_rational
from rlcredit.verification.verifiers import Verdict

RIGHT_VERDICT = Verdict.RIGHT.name.lower()


def count_answer_votes(answers: Sequence[dict[str, Any]]) -> tuple[int, tuple[int, ...]]:
    r"""Count the votes of a question's completions.

    All right answers are one vote: to the verifier they equal one reference. Where a question has several right answers
    (``countdown``), they count together, and a vote is right more often than one by name. Wrong answers are the same if
    their texts are, or if both are numbers of one value: 0.5, 1/2 and \frac{1}{2}. Without an answer there is no vote.

    Args:
        answers: Answers with ``verdict`` and ``answer``.

    Returns:
        Votes for the right answer, and for each of the others, most first.

    Example:
        >>> given = [("right", "7"), ("right", "7.0"), ("wrong", "1/2"), ("wrong", "0.5"), ("wrong", None)]
        >>> count_answer_votes([{"verdict": verdict, "answer": answer} for verdict, answer in given])
        (2, (2,))

    """
    right = sum(answer["verdict"] == RIGHT_VERDICT for answer in answers)
    wrong_votes = Counter(
        _make_vote_key(answer["answer"])
        for answer in answers
        if answer["verdict"] != RIGHT_VERDICT and answer["answer"]
    )
    return right, tuple(sorted(wrong_votes.values(), reverse=True))


def _make_vote_key(answer: str) -> Hashable:
    """Return a key that is equal for answers with the same meaning."""
    value = read_rational(answer)
    return re.sub(r"\s+|\$", "", answer).casefold() if value is None else value


PRIMARY_ACCURACY = "pass_at_1"
"""What policies are compared by: the mean accuracy of a completion, also called avg@n."""


@dataclass(frozen=True)
class PolicyAccuracy:
    """Accuracy of one policy on one task.

    Args:
        accuracy: Accuracy per question, by name: ``pass_at_k``, and ``maj_at_k`` from 4 on, each of shape ``(Q,)``.
        means: Means over completions: ``tokens``, ``entropy`` (per token, nats), and the shares that were
            ``truncated``, ``unjudged``, or had ``no_answer`` where the task tells; of episodes also ``turns`` and
            ``reward``.
        curve: Value of pass@k for every k from 1 to the largest requested.

    """

    accuracy: Mapping[str, NDArray[np.float64]]
    means: Mapping[str, float]
    curve: Sequence[float] = ()

    def mean(self, name: str) -> float:
        """Return an accuracy over all questions."""
        return float(self.accuracy[name].mean())

    def interval(self, name: str) -> Interval:
        """Return the 95 % interval of an accuracy for new questions of the same kind."""
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
    """Compute accuracies from answers; an answer that could not be judged counts as wrong, as in validation.

    Args:
        answers: Answers, those of a question together, n each.
        completions: Completions per question, n.
        ks: Values of k in pass@k and maj@k, each at most n.

    """
    votes = [count_answer_votes(answers[start : start + completions]) for start in range(0, len(answers), completions)]
    right = np.array([right_votes for right_votes, _ in votes])
    passes = [pass_at_k(completions, right, k) for k in range(1, max(ks) + 1)]
    pass_rates = {f"pass_at_{k}": passes[k - 1] for k in ks}
    majority_rates = {
        f"maj_at_{k}": np.array(
            [majority_at_k(right_votes, wrong_votes, completions, k) for right_votes, wrong_votes in votes]
        )
        for k in ks
        if k > 2  # a vote of two is one of them
    }
    assert right.sum() == sum(answer["verdict"] == RIGHT_VERDICT for answer in answers)
    return PolicyAccuracy(
        {**pass_rates, **majority_rates}, _average_completions(answers), [float(rates.mean()) for rates in passes]
    )


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
        **{name: float(np.mean([a[name] for a in answers])) for name in ("turns", "reward") if name in answers[0]},
    }
