"""Which completions give the same answer, for a majority vote."""

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from rlcredit.verification.mathematics.numbers import read_rational
from rlcredit.verification.verifiers import Verdict

RIGHT = Verdict.RIGHT.name.lower()


def count_answer_votes(answers: Sequence[dict[str, Any]]) -> tuple[int, tuple[int, ...]]:
    r"""Count the votes of completions of one question.

    All right answers are one vote: to the verifier they equal one reference. Where a question has several right answers
    (``countdown``), they count together, and a vote is right more often than one by name. Wrong answers are the same if
    their texts are, or if both are numbers of one value: 0.5, 1/2 and \frac{1}{2}. Without an answer there is no vote.

    Args:
        answers: with ``verdict`` and ``answer``.

    Returns:
        Votes for the right answer, and for each of the others, most first.

    Example:
        >>> given = [("right", "7"), ("right", "7.0"), ("wrong", "1/2"), ("wrong", "0.5"), ("wrong", None)]
        >>> count_answer_votes([{"verdict": verdict, "answer": answer} for verdict, answer in given])
        (2, (2,))

    """
    right = sum(each["verdict"] == RIGHT for each in answers)
    others = Counter(_make_vote_key(each["answer"]) for each in answers if each["verdict"] != RIGHT and each["answer"])
    return right, tuple(sorted(others.values(), reverse=True))


def _make_vote_key(answer: str) -> Hashable:
    """Return what is equal for answers that say the same."""
    value = read_rational(answer)
    return re.sub(r"\s+|\$", "", answer).casefold() if value is None else value
