"""Judge with a user's function, in processes of its own."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from rlcredit.verification.fault_attribution import AT_FAULT
from rlcredit.verification.user_functions import MADE_UP_COMPLETIONS, UserFunction, require_user_path
from rlcredit.verification.worker_replies import Outcome, Reply

VERIFIER_KEY = "data.init_args.verifier"

VERIFIER_SIGNATURE = "(completion: str, answer: str, metadata: dict) -> bool | float"

JudgeCall = tuple[str, str, dict[str, Any]]
"""Completion, answer, metadata."""


class VerifierCall(NamedTuple):
    """What a verifier is called with.

    Attributes:
        completions: The completion.
        reference: Answer of its question; empty where there is none.
        metadata: Metadata of its question.

    """

    completions: Sequence[str]
    reference: str
    metadata: Mapping[str, Any]
    misread = Outcome.RAISED  # no field: a completion may be what makes it return something else

    def about(self, completions: Sequence[str]) -> Self:
        """Return the same call about another completion."""
        return self._replace(completions=completions)

    def describe(self) -> str:
        """Return the call in words."""
        return f"called with the completion {self.completions[0]!r:.80} and the answer {self.reference!r:.80}"

    @classmethod
    def check_signature(cls, function: Callable[..., Any]) -> None:
        """Refuse a function that does not take three arguments.

        Raises:
            TypeError: with what they are.

        """
        signature = inspect.signature(function)
        try:
            signature.bind("", "", {})
        except TypeError as error:
            is_reward = "completions" in signature.parameters
            advice = ". A reward function is named in data.init_args.rewards" if is_reward else ""
            raise TypeError(f"it cannot be called as {VERIFIER_SIGNATURE}: {error}{advice}") from None

    def call_function(self, function: Callable[..., Any]) -> Any:
        """Call a verifier."""
        return function(self.completions[0], self.reference, self.metadata)

    def read_values(self, result: Any) -> Reply:
        """Return the reply to a judgement; see :func:`read_user_judgement`."""
        return Reply([read_user_judgement(result)])


def read_user_judgement(result: Any) -> float:
    """Return a verifier's result as a number from 0 to 1.

    Raises:
        TypeError: it is neither a bool nor such a number.

    Example:
        >>> read_user_judgement(True), read_user_judgement(0.5)
        (1.0, 0.5)

    """
    if not hasattr(result, "__float__") or not 0 <= float(result) <= 1:
        raise TypeError(f"it returned {result!r:.80}; expected True, False or a number from 0 to 1")
    return float(result)


@dataclass(frozen=True)
class VerifierFunction:
    """A verifier of one's own, and how it is run.

    Args:
        function: Dotted path of a function ``(completion: str, answer: str, metadata: dict) -> bool | float``, or of a
            class whose objects are called so.
        locked: Whether it runs in locked processes, in which a completion that it evaluates can do nothing.
        seconds: Seconds that a completion may take; 3, or 20 if it is not locked, if None.

    """

    function: str
    locked: bool = True
    seconds: float | None = None


class UserVerifier:
    """A user's function or class instance that says whether a completion is right, or how right.

    What raises because of the completion, or takes too long because of it, is wrong; what does so with the reference
    as completion too is unjudged.

    Args:
        path: Dotted path of the function or class, in the working directory or wherever Python finds it; or that with
            how it is run.
        budget: Seconds that a batch may lose to slow completions, which share them; see
            :class:`~rlcredit.verification.worker_pool.RequestBatch`.
        unsafe: Whether to ask it even where the system cannot lock the process that does.

    Raises:
        ValueError: the path is none, or names something of Python's own.

    """

    def __init__(self, path: str | VerifierFunction, budget: float = 10.0, unsafe: bool = False) -> None:
        verifier = path if isinstance(path, VerifierFunction) else VerifierFunction(path)
        self.path = verifier.function
        require_user_path(VERIFIER_KEY, self.path, VERIFIER_SIGNATURE, "my_verifier.judge for judge in my_verifier.py")
        self.function = UserFunction(
            VERIFIER_KEY, self.path, verifier.locked, verifier.seconds, budget, unsafe, "Such completions are wrong"
        )

    @property
    def file(self) -> Path | None:
        """File of the verifier's module, found without importing it; None if there is none."""
        return self.function.file

    def start(self, *questions: tuple[str, dict[str, Any]]) -> None:
        """Try it with references as completions, and start its processes; later calls do nothing.

        Args:
            questions: Answer and metadata of some questions.

        Raises:
            ValueError: with what is wrong with it.

        """
        instead = MADE_UP_COMPLETIONS[1]
        self.function.start([VerifierCall([answer or instead], answer, metadata) for answer, metadata in questions])

    def score_completions(self, calls: Sequence[JudgeCall]) -> list[float | None]:
        """Return the score of each completion from 0 to 1, None where it could not tell; equal ones are asked once."""
        keys = [(completion, answer, id(metadata)) for completion, answer, metadata in calls]
        distinct_calls = dict(zip(keys, calls, strict=True))
        if calls:
            self.start(calls[0][1:])
        replies = self.function.judge(
            [VerifierCall([text], answer, metadata) for text, answer, metadata in distinct_calls.values()]
        )
        scores = dict(zip(distinct_calls, (_read_score(reply.values[0]) for reply in replies), strict=True))
        return [scores[key] for key in keys]


def _read_score(value: float | None) -> float | None:
    """Return zero for a completion that is at fault, None where nobody can tell."""
    if value == AT_FAULT:
        return 0.0
    return None if value != value else value
