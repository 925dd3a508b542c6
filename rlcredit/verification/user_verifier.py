"""Judge with a user's function, in locked processes."""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlcredit.config.module_source import is_standard_library, locate_module
from rlcredit.verification.user_judge import SIGNATURE, make_user_judge
from rlcredit.verification.verifiers import Verdict, make_verdict, require_sandbox
from rlcredit.verification.worker_pool import WorkerPool
from rlcredit.verification.workers import START_TIMEOUT, build_worker_environment

SECONDS = 3.0
"""Seconds that the verifier may take for a completion, computing or asleep."""

JudgeCall = tuple[str, str, dict[str, Any]]
"""Completion, answer, metadata."""


def build_reference_call(_: str, answer: str, metadata: dict[str, Any]) -> list[JudgeCall]:
    """Return a call that shows whether a verifier takes long because of the question."""
    return [(answer, answer, metadata)]


class UserVerifier:
    """A user's function or class instance that says whether a completion is right.

    Right is ``True`` and 1; ``False`` and what is below 1 is wrong. What raises because of the completion, or takes too
    long because of it, is wrong; what does so with the reference as completion too is unjudged.

    Args:
        path: Dotted path of the function or class, in the working directory or wherever Python finds it.
        budget: Seconds that a batch may lose to slow completions, which share them; see
            :class:`~rlcredit.verification.worker_pool.RequestBatch`.
        unsafe: Whether to ask it even where the system cannot lock the process that does.

    Raises:
        ValueError: the path is none, or names something of Python's own.

    """

    def __init__(self, path: str, budget: float = 10.0, unsafe: bool = False) -> None:
        if "." not in path or not all(part.isidentifier() for part in path.split(".")):
            raise ValueError(
                f"data.verifier: {path!r} is not a dotted path. Name a function {SIGNATURE}, for example "
                "my_verifier.judge for judge in my_verifier.py."
            )
        if is_standard_library(path):
            raise ValueError(f"data.verifier: {path} is part of Python and not a verifier.")
        require_sandbox(f"data.verifier: {path}", unsafe)
        self.path, self.budget, self.folder = path, budget, str(Path.cwd())
        self.worker_pool: WorkerPool | None = None

    @property
    def file(self) -> Path | None:
        """File of the verifier's module, found without importing it; None if there is none."""
        here = Path(self.folder, *self.path.split(".")[:-1]).with_suffix(".py")
        if here.is_file():
            return here
        spec, _ = locate_module(self.path)
        return Path(spec.origin) if spec and spec.origin else None

    def start(self, answer: str, metadata: dict[str, Any]) -> None:
        """Try it once with the reference as completion, and start its workers; later calls do nothing.

        Raises:
            ValueError: with what is wrong with it.

        """
        if self.worker_pool is None:
            example = (answer, answer, metadata)
            if complaint := self._find_fault(example):
                raise ValueError(f"data.verifier: {self.path}: {complaint}.")
            self.worker_pool = WorkerPool(
                *(make_user_judge, self.path, self.folder, example),
                timeout=SECONDS,
                budget=self.budget,
                alone=build_reference_call,
            )
            self.worker_pool.start_workers()

    def judge(self, calls: Sequence[JudgeCall]) -> list[Verdict]:
        """Judge each completion; equal ones are asked once."""
        if not calls:
            return []
        self.start(*calls[0][1:])
        assert self.worker_pool is not None
        keys = [(completion, answer, id(metadata)) for completion, answer, metadata in calls]
        asked = dict(zip(keys, calls, strict=True))
        verdicts = dict(
            zip(asked, map(make_verdict, self.worker_pool.answer_requests(list(asked.values()))), strict=True)
        )
        return [verdicts[key] for key in keys]

    def _find_fault(self, example: JudgeCall) -> str:
        end, own = os.pipe()
        command = [sys.executable, "-P", "-m", "rlcredit.verification.user_judge_trial", str(own)]
        with open(end, "rb") as answered:
            try:
                tried = subprocess.run(
                    command,
                    input=pickle.dumps((self.path, self.folder, example, SECONDS)),
                    pass_fds=[own],
                    env=build_worker_environment(),
                    capture_output=True,
                    timeout=START_TIMEOUT,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"it was not imported within {START_TIMEOUT:g} s"
            finally:
                os.close(own)
            said = answered.read().decode()
        if tried.returncode == 0:
            return said
        last = tried.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        ended = f"it ended its process (status {tried.returncode}) {last}".strip()
        return f"one example took it longer than {SECONDS:g} s" if tried.returncode == -14 else ended
