"""The interface of an environment: text in, text out, turn by turn."""

import copy
import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from rlcredit.policy.prompt_format import Tools
    from rlcredit.tasks.example import Example


class Turn(NamedTuple):
    """What an environment answers to an action.

    Attributes:
        text: Observation that the next action is an answer to.
        reward: Reward of the action; None where there is none. An episode without any is judged by the task's verifier,
            by its last action.
        done: Whether the episode has ended.

    """

    text: str = ""
    reward: float | None = None
    done: bool = False


class Environment(ABC):
    """An environment; one of your own inherits from this class and has ``reset`` and ``step``.

    One object lives through one episode. What it says follows from the example and the actions alone: a run that was
    interrupted makes it again by replay. ``step`` may be asynchronous; then all rows of a rollout are awaited together.
    """

    slow: bool = False
    """Whether an answer takes longer than a token. Rows then wait for each other, and are answered together; so they do
    where ``step`` is asynchronous."""

    is_graded: bool = False
    """Whether an episode can earn other rewards than one and zero; operators that take verdicts are then refused."""

    locked: bool = False
    """Whether it runs in locked processes, as verifiers do, where an action that it evaluates can do nothing."""

    tools: "Tools" = ()
    """Schemas of tools that actions call; chat templates show them to the policy."""

    @abstractmethod
    def reset(self, example: "Example") -> str | None:
        """Begin an episode.

        Args:
            example: Question with its answer and metadata; ``example.metadata["seed"]`` in a task without a data file.

        Returns:
            What the policy reads first, in place of the question; None for the question as it stands.

        """

    @abstractmethod
    def step(self, action: str) -> "Turn | Awaitable[Turn]":
        """Answer an action.

        Args:
            action: Text of the policy's turn, without the stop string or end-of-sequence token.

        """

    @property
    def is_awaited(self) -> bool:
        """Whether rows wait for each other's answers: it is slow, or answers asynchronously."""
        return self.slow or inspect.iscoroutinefunction(self.step)

    def copy(self) -> "Environment":
        """Return an environment in the same state, which goes its own way."""
        return copy.deepcopy(self)
