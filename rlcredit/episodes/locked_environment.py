"""Environments in locked processes: any of them plays any episode, from its beginning at every turn."""

import asyncio
import copy
import pickle
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Self

from rlcredit.episodes.environment import Environment, Turn
from rlcredit.episodes.environment_player import make_player, unpack_turn
from rlcredit.episodes.turn_values import TurnError
from rlcredit.verification.user_functions import LOCKED_SECONDS, NO_REPLY, START_SECONDS
from rlcredit.verification.verifiers import require_sandbox
from rlcredit.verification.worker_pool import WorkerPool
from rlcredit.verification.workers import UnmadeJudgeError

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example


def lock_environment(environment: Environment, unsafe: bool = False, budget: float = 10.0) -> Environment:
    """Return an environment that runs where its class says: the same one, or one in locked processes.

    Args:
        environment: Environment.
        unsafe: Whether to run it even where the system cannot lock a process.
        budget: Seconds that the rows of a batch may lose to slow answers at a turn; see
            :class:`~rlcredit.verification.worker_pool.RequestBatch`.

    Raises:
        ValueError: the system cannot lock a process.

    """
    return LockedEnvironment(environment, unsafe, budget) if environment.locked else environment


@dataclass
class PendingTurn:
    """An episode that is to be answered.

    Attributes:
        example: Example of the episode.
        actions: Actions so far.
        answer: Answer to the last of them, or why there is none.

    """

    example: SimpleNamespace
    actions: list[str]
    answer: Turn | TurnError | None = None

    def read_answer(self) -> Turn:
        """Return the answer, or raise why there is none."""
        if isinstance(self.answer, Turn):
            return self.answer
        assert self.answer is not None
        raise self.answer


class EnvironmentWorkers:
    """Locked processes that play the episodes of an environment; they start at the first one.

    Args:
        environment: Environment.
        budget: Seconds that a batch may lose to slow answers.

    """

    def __init__(self, environment: Environment, budget: float) -> None:
        self.environment, self.name, self.budget = environment, type(environment).__name__, budget
        self.pool: WorkerPool | None = None
        self.waiting: list[PendingTurn] = []

    def _start_pool(self, example: SimpleNamespace) -> WorkerPool:
        """Return the processes, started with an example if they are not.

        Raises:
            TurnError: the environment cannot be sent to them.

        """
        if self.pool is None:
            try:
                content = pickle.dumps((self.environment, example))
            except Exception as error:  # noqa: BLE001  (whatever it holds may refuse in its own way)
                raise TurnError(
                    f"{self.name} cannot be sent to a locked process: {error}. Keep what cannot be pickled out of it "
                    "until reset."
                ) from None
            arguments = (make_player, content, str(Path.cwd()))
            self.pool = WorkerPool(*arguments, timeout=LOCKED_SECONDS, budget=self.budget, start_seconds=START_SECONDS)
        return self.pool

    def play(self, turns: list[PendingTurn]) -> None:
        """Have some episodes answered, all at a time."""
        try:
            replies = self._start_pool(turns[0].example).ask_requests([(turn.example, turn.actions) for turn in turns])
            answers = [unpack_turn(reply or NO_REPLY, self.name) for (reply,) in replies]
        except UnmadeJudgeError as error:
            answers = [TurnError(f"{self.name} cannot be used: {error}.")] * len(turns)
        except TurnError as error:
            answers = [error] * len(turns)
        for turn, answer in zip(turns, answers, strict=True):
            turn.answer = answer

    async def play_together(self, turn: PendingTurn) -> None:
        """Have an episode answered, together with all that are asked in the same moment."""
        self.waiting.append(turn)
        await asyncio.sleep(0)  # the others ask
        if turn.answer is None:
            turns, self.waiting = self.waiting, []
            self.play(turns)


class LockedEnvironment(Environment):
    """An environment in locked processes; see :mod:`rlcredit.verification.sandbox`.

    Args:
        environment: Environment; what it says must follow from the example and the actions.
        unsafe: Whether to run it even where the system cannot lock a process.
        budget: Seconds that the rows of a batch may lose to slow answers at a turn.

    """

    slow = True

    def __init__(self, environment: Environment, unsafe: bool = False, budget: float = 10.0) -> None:
        require_sandbox(f"data.environment: {type(environment).__name__}", unsafe)
        self.is_graded, self.tools = environment.is_graded, environment.tools
        self.workers = EnvironmentWorkers(environment, budget)
        self.example: SimpleNamespace = SimpleNamespace()
        self.actions: list[str] = []

    def reset(self, example: "Example") -> str | None:
        """Begin an episode.

        Raises:
            TurnError: with what is wrong.

        """
        # No `Example`: to unpickle it, a locked process would import all tasks.
        self.example, self.actions = SimpleNamespace(**example._asdict(), text=example.text), []
        turn = PendingTurn(self.example, [])
        self.workers.play([turn])
        return turn.read_answer().text or None

    async def step(self, action: str) -> Turn:
        """Answer an action.

        Raises:
            TurnError: with what is wrong.

        """
        self.actions.append(action)
        turn = PendingTurn(self.example, list(self.actions))
        await self.workers.play_together(turn)
        return turn.read_answer()

    def copy(self) -> Self:
        """Return an environment in the same state, with the same processes."""
        twin = copy.copy(self)
        twin.actions = list(self.actions)
        return twin
