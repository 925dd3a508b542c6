"""Judge with a user's function, in locked processes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlcredit.verification.user_functions import find_user_fault, find_user_file, require_user_path
from rlcredit.verification.user_judge import SIGNATURE, make_user_judge, prepare_verifier_trial
from rlcredit.verification.verifiers import Verdict, make_verdict, require_sandbox
from rlcredit.verification.worker_pool import WorkerPool

ADVICE = "Return False for a completion that it cannot read"

SECONDS = 3.0
"""Seconds that the verifier may take for a completion, computing or asleep."""

JudgeCall = tuple[str, str, dict[str, Any]]
"""Completion, answer, metadata."""


def build_reference_call(_: str, answer: str, metadata: dict[str, Any]) -> list[JudgeCall]:
    """Return a call that shows whether a verifier takes long because of the question."""
    return [(answer, answer, metadata)]


class UserVerifier:
    """A user's function or class instance that says whether a completion is right.

    Right is ``True`` and a score from ``solved_at`` on; ``False`` and a lower score is wrong. What raises because of
    the completion, or takes too long because of it, is wrong; what does so with the reference as completion too is
    unjudged.

    Args:
        path: Dotted path of the function or class, in the working directory or wherever Python finds it.
        budget: Seconds that a batch may lose to slow completions, which share them; see
            :class:`~rlcredit.verification.worker_pool.RequestBatch`.
        unsafe: Whether to ask it even where the system cannot lock the process that does.
        solved_at: Score from which a completion is right.

    Raises:
        ValueError: the path is none, or names something of Python's own.

    """

    def __init__(self, path: str, budget: float = 10.0, unsafe: bool = False, solved_at: float = 1.0) -> None:
        require_user_path("data.verifier", path, SIGNATURE, "my_verifier.judge for judge in my_verifier.py")
        require_sandbox(f"data.verifier: {path}", unsafe)
        self.path, self.budget, self.folder = path, budget, str(Path.cwd())
        self.solved_at = solved_at
        self.worker_pool: WorkerPool | None = None

    @property
    def file(self) -> Path | None:
        """File of the verifier's module, found without importing it; None if there is none."""
        return find_user_file(self.path, self.folder)

    def start(self, answer: str, metadata: dict[str, Any]) -> None:
        """Try it once with the reference as completion, and start its workers; later calls do nothing.

        Raises:
            ValueError: with what is wrong with it.

        """
        if self.worker_pool is None:
            example = (answer, answer, metadata)
            said = f"called with the completion {answer!r:.80} with the answer {answer!r:.80}"
            arguments = (self.path, self.folder, example)
            if complaint := find_user_fault(prepare_verifier_trial, arguments, said, ADVICE, SECONDS):
                raise ValueError(f"data.verifier: {self.path}: {complaint}.")
            self.worker_pool = WorkerPool(
                *(make_user_judge, *arguments),
                timeout=SECONDS,
                budget=self.budget,
                alone=build_reference_call,
            )
            self.worker_pool.start_workers()

    def judge(self, calls: Sequence[JudgeCall]) -> list[Verdict]:
        """Judge each completion; equal ones are asked once."""
        return [make_verdict(score, self.solved_at) for score in self.score_completions(calls)]

    def score_completions(self, calls: Sequence[JudgeCall]) -> list[float | None]:
        """Return the score of each completion from 0 to 1, None where it could not tell; equal ones are asked once."""
        if not calls:
            return []
        self.start(*calls[0][1:])
        assert self.worker_pool is not None
        keys = [(completion, answer, id(metadata)) for completion, answer, metadata in calls]
        asked = dict(zip(keys, calls, strict=True))
        scores = dict(zip(asked, self.worker_pool.answer_requests(list(asked.values())), strict=True))
        return [scores[key] for key in keys]
