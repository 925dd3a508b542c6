"""Environments in locked processes: any of them plays any episode, from its beginning at every turn."""

import asyncio
import copy
import pickle
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Self

from rlcredit.episodes.environment import Environment, Turn
from rlcredit.episodes.environment_player import make_player, read_reply
from rlcredit.episodes.turn_values import TurnError
from rlcredit.verification.user_functions import LOCKED_SECONDS, NO_REPLY, START_SECONDS
from rlcredit.verification.verifiers import require_sandbox
from rlcredit.verification.worker_pool import WorkerPool
from rlcredit.verification.workers import UnmadeJudgeError

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example


def lock_environment(environment: Environment, unsafe: bool = False, budget: float = 10.0) -> Environment:
    """Return an environment that runs where its class says: the same one, or one in locked processes."""
    return LockedEnvironment(environment, unsafe, budget) if environment.locked else environment


class EnvironmentWorkers:
    """Locked processes that play the episodes of an environment; they start at the first one.

    Args:
        environment: Environment.
        budget: Seconds that the episodes of a turn may lose to slow answers.

    """

    def __init__(self, environment: Environment, budget: float) -> None:
        self.environment, self.name, self.budget = environment, type(environment).__name__, budget
        self.pool: WorkerPool | None = None
        self.waiting: list[LockedEnvironment] = []

    def _start_pool(self, example: SimpleNamespace) -> WorkerPool:
        arguments = (make_player, pickle.dumps((self.environment, example)), str(Path.cwd()))
        return WorkerPool(*arguments, timeout=LOCKED_SECONDS, budget=self.budget, start_seconds=START_SECONDS)

    def answer_episodes(self, episodes: "Sequence[LockedEnvironment]") -> None:
        """Have the last actions of some episodes answered, all at a time."""
        try:
            self.pool = self.pool or self._start_pool(episodes[0].example)
            replies = self.pool.ask_requests([(episode.example, episode.actions) for episode in episodes])
            answers = [read_reply(reply or NO_REPLY, self.name) for (reply,) in replies]
        except (UnmadeJudgeError, pickle.PicklingError, AttributeError, TypeError) as error:
            fault = TurnError(f"{self.name} cannot run in locked processes: {error}. Mend it, or set `locked = False`.")
            answers = [fault] * len(episodes)
        for episode, answer in zip(episodes, answers, strict=True):
            episode.answer = answer


class LockedEnvironment(Environment):
    """An environment in locked processes; see :mod:`rlcredit.verification.sandbox`.

    Args:
        environment: Environment; what it says must follow from the example and the actions.
        unsafe: Whether to run it even where the system cannot lock a process.
        budget: Seconds that the episodes of a turn may lose to slow answers, in which they share.

    """

    slow = True

    def __init__(self, environment: Environment, unsafe: bool = False, budget: float = 10.0) -> None:
        require_sandbox(f"data.init_args.environment: {type(environment).__name__}", unsafe)
        self.is_graded, self.tools = environment.is_graded, environment.tools
        self.workers = EnvironmentWorkers(environment, budget)
        self.example, self.actions = SimpleNamespace(), []
        self.answer: Turn | TurnError | None = None

    def reset(self, example: "Example") -> str | None:
        """Begin an episode."""
        # No `Example`: to unpickle it, a locked process would import all tasks.
        self.example, self.actions = SimpleNamespace(**example._asdict(), text=example.text), []
        self.workers.answer_episodes([self])
        return self._read_answer().text or None

    async def step(self, action: str) -> Turn:
        """Answer an action, together with all that are asked in the same moment."""
        self.actions, self.answer = [*self.actions, action], None
        self.workers.waiting.append(self)
        await asyncio.sleep(0)  # the others ask
        if self.answer is None:
            episodes, self.workers.waiting = self.workers.waiting, []
            self.workers.answer_episodes(episodes)
        return self._read_answer()

    def _read_answer(self) -> Turn:
        if isinstance(self.answer, Turn):
            return self.answer
        assert self.answer is not None
        raise self.answer

    def copy(self) -> Self:
        """Return an environment in the same state, with the same processes."""
        return copy.copy(self)
