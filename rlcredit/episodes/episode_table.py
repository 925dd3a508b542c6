"""The episodes of a rollout: one environment a row, the turns that have been taken, and what is to be said of them."""

import asyncio
import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from rlcredit.base.exit_status import RunStopped
from rlcredit.base.interrupts import is_signal
from rlcredit.base.messages import warn_once
from rlcredit.base.process_end import STOPPING_ERRORS, catch_process_end
from rlcredit.config.error_messages import describe_exception
from rlcredit.decoding.background_coroutine import BackgroundCoroutine
from rlcredit.episodes.environment import Environment, Turn
from rlcredit.episodes.observation_format import TurnFormat
from rlcredit.episodes.turn_values import TurnError, read_opening, read_turn

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example


class TurnLimits(NamedTuple):
    """Limits of an episode, beside the most tokens that it may have.

    Attributes:
        turns: Most turns; the episode then ends as it stands.
        tokens: Most sampled tokens of a turn, which is then taken as it stands; as many as an episode may have if None.

    """

    turns: int
    tokens: int | None = None


@dataclass
class Episode:
    """One episode.

    Attributes:
        environment: What answers; it has been reset.
        observations: Text that each turn acts on, the first one before any turn.
        opening: First of them, if the environment gave it in place of the question; else None.
        actions: Text of each turn that has ended.
        turns: What the environment answered to each.
        fault: Why the environment cannot go on; None if it can.

    """

    environment: Environment
    observations: list[str]
    opening: str | None = None
    actions: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    fault: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether the environment has ended the episode."""
        return bool(self.turns) and self.turns[-1].done

    @property
    def has_rewards(self) -> bool:
        """Whether the environment has given any reward."""
        return any(turn.reward is not None for turn in self.turns)

    @property
    def reward(self) -> float:
        """Sum of the rewards."""
        return sum(turn.reward or 0.0 for turn in self.turns)

    def copy_episode(self) -> "Episode":
        """Return an episode that stands where this one does, and goes its own way.

        Raises:
            RunStopped: the environment cannot be copied in mid-episode.

        """
        try:
            environment = self.environment.copy()
        except Exception as error:  # (an environment is a program of others)
            raise RunStopped(
                f"data.init_args.environment: {type(self.environment).__name__}.copy raised "
                f"{describe_exception(error)} after "
                f"{len(self.turns)} turns. Continuations of an episode need it: write one that copies all state."
            ) from error
        return replace(
            self,
            environment=environment,
            observations=list(self.observations),
            actions=list(self.actions),
            turns=list(self.turns),
        )


class EpisodeTable:
    """The episodes of a rollout; it takes the tokens of turns, and has environments answer them.

    Args:
        environment: Environment, of which every episode gets a copy.
        examples: Example of each row, B of them.
        turn_format: How turns are written for the policy.
        limits: Limits of an episode.

    Attributes:
        episodes: B episodes.

    """

    def __init__(
        self, environment: Environment, examples: "Sequence[Example]", turn_format: TurnFormat, limits: TurnLimits
    ) -> None:
        self.name, self.format, self.limits = type(environment).__name__, turn_format, limits
        self.is_graded, self.tools = environment.is_graded, environment.tools
        self.is_slow = environment.is_awaited
        self.episodes = [open_episode(environment, example) for example in examples]

    @property
    def turn_tokens(self) -> int | None:
        """Most tokens of a turn."""
        return self.limits.tokens

    @property
    def turn_ends(self) -> Sequence[str]:
        """Texts that end a turn, beside the policy's stop tokens."""
        return self.format.turn_ends

    def has_ended(self, tokens: Sequence[int]) -> bool:
        """Whether a turn ends with the last of its tokens so far."""
        return len(tokens) == self.limits.tokens or self.format.has_ended(tokens)

    def answer_turns(self, rows: Sequence[int], turns: Sequence[Sequence[int]]) -> list[list[int] | None]:
        """Have environments answer the turns that rows have taken, all together.

        Args:
            rows: Numbers of the rows.
            turns: Tokens of the turn of each.

        Returns:
            The tokens that follow in each row, None where the episode has ended.

        """
        episodes = [self.episodes[row] for row in rows]
        for episode, tokens in zip(episodes, turns, strict=True):
            episode.actions.append(self.format.find_action(tokens))
        for episode, answer in zip(episodes, step_environments(episodes, self.name), strict=True):
            is_fault = isinstance(answer, TurnError)
            episode.fault = str(answer) if is_fault else None
            episode.turns.append(Turn(done=True) if is_fault else answer)
        return [
            None if self._has_ended(episode) else self._write_observation(episode, tokens)
            for episode, tokens in zip(episodes, turns, strict=True)
        ]

    def _has_ended(self, episode: Episode) -> bool:
        return episode.is_done or len(episode.turns) == self.limits.turns

    def _write_observation(self, episode: Episode, tokens: Sequence[int]) -> list[int]:
        """Note the observation of the next turn, and return its tokens behind those of the turn before it."""
        text = episode.turns[-1].text
        episode.observations.append(text)
        return self.format.encode_observation(text, is_cut=not self.format.has_ended(tokens))

    @property
    def has_rewards(self) -> bool:
        """Whether the environment has given any reward."""
        return any(episode.has_rewards for episode in self.episodes)

    def report_faults(self) -> None:
        """Say once what is wrong with the environment, if anything is."""
        faults = [episode.fault for episode in self.episodes if episode.fault]
        if faults:
            warn_once(
                f"{len(faults)} of {len(self.episodes)} episodes are not judged, because their environment failed. "
                f"{faults[0]}"
            )

    def list_rewards(self) -> Tensor:
        """Return the reward of each turn, zero without one, shape ``(B, K)`` float32."""
        return self._pad_turns(lambda episode: [turn.reward or 0.0 for turn in episode.turns], 0.0)

    def list_states(self) -> Tensor:
        """Return the hash of the observation that each turn acts on, -1 behind the last, shape ``(B, K)`` int64."""
        return self._pad_turns(lambda episode: list(map(hash_observation, episode.observations)), -1)

    def _pad_turns(self, read: Callable[[Episode], list[Any]], filler: float) -> Tensor:
        rows = [read(episode) for episode in self.episodes]
        width = max(1, max(len(episode.observations) for episode in self.episodes))
        return torch.tensor([row + [filler] * (width - len(row)) for row in rows])


def hash_observation(text: str) -> int:
    """Return a hash of a text, from 0 to below 2**63, the same in every process.

    Example:
        >>> hash_observation("higher") == hash_observation("higher"), hash_observation("higher") < 2**63
        (True, True)

    """
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def open_episode(environment: Environment, example: "Example") -> Episode:
    """Return an episode that has begun: a copy of an environment, reset; what goes wrong is its fault."""
    own_environment = environment.copy()
    episode = Episode(own_environment, [example.text])
    name = type(environment).__name__
    text = _call_environment(lambda: read_opening(own_environment.reset(example), name), name, "reset")
    if isinstance(text, TurnError):
        episode.fault = str(text)
    elif text is not None:
        episode.observations, episode.opening = [text], text
    return episode


def step_environments(episodes: Sequence[Episode], name: str) -> list[Turn | TurnError]:
    """Return each environment's answer to its last action, or what is wrong with it; slow ones are awaited together.

    Args:
        episodes: Episodes; one with a fault is not asked.
        name: Name of the environment, for messages.

    """
    answers = [
        TurnError(episode.fault)
        if episode.fault
        else _call_environment(lambda episode=episode: episode.environment.step(episode.actions[-1]), name, "step")
        for episode in episodes
    ]
    waiting = [place for place, answer in enumerate(answers) if inspect.isawaitable(answer)]
    if waiting:
        results = BackgroundCoroutine(_await_together([answers[place] for place in waiting], name)).wait()
        for place, result in zip(waiting, results, strict=True):
            answers[place] = result
    return [answer if isinstance(answer, TurnError) else _read_answer(answer, name) for answer in answers]


async def _await_together(answers: Sequence[Any], name: str) -> list[Any]:
    """Return the answers of several environments, or what is wrong with them."""

    async def await_answer(answer: Any) -> Any:
        try:
            return await answer
        except (Exception, SystemExit) as error:  # noqa: BLE001  (an environment is a program of others)
            return _describe_failure(error, name, "step")

    return await asyncio.gather(*map(await_answer, answers))


def _call_environment(call: Callable[[], Any], name: str, method: str) -> Any:
    """Return the result of an environment's method, or what is wrong with it."""
    try:
        with catch_process_end():
            return call()
    except STOPPING_ERRORS as error:
        if is_signal(error):
            raise
        return _describe_failure(error, name, method)
    except Exception as error:  # noqa: BLE001  (an environment is a program of others)
        return _describe_failure(error, name, method)


def _describe_failure(error: BaseException, name: str, method: str) -> TurnError:
    if isinstance(error, TurnError):
        return error
    return TurnError(f"{name}.{method} raised {describe_exception(error)}")


def _read_answer(answer: Any, name: str) -> Turn | TurnError:
    try:
        return read_turn(answer, name)
    except TurnError as error:
        return error
