"""The worker's side of a locked environment: play an episode from its beginning, and say how it was answered last."""

import inspect
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rlcredit.episodes.environment import Environment, Turn
from rlcredit.episodes.turn_values import TurnError, read_opening, read_turn
from rlcredit.verification.fault_attribution import describe_error
from rlcredit.verification.worker_replies import MOST_VALUES, Outcome, Reply
from rlcredit.verification.workers import FORGED_FAULT

MOST_CHARACTERS = MOST_VALUES - 2
"""Characters that a locked environment may say at a time."""

PlayRequests = Callable[[Any, Sequence[str]], Iterator[tuple[int, Reply]]]
"""Plays an example with all actions so far."""


def make_player(content: bytes, folder: str) -> PlayRequests:
    """Return the player of an environment's episodes, made before the process is locked.

    Args:
        content: Environment and an example of an episode, pickled; it is played once, for what is imported late.
        folder: Folder where the environment's module may lie; the working directory of the run.

    Raises:
        BaseException: whatever importing raises.
        TypeError: the environment is asynchronous.

    """
    sys.path.append(folder)
    environment, example = pickle.loads(content)
    if inspect.iscoroutinefunction(environment.step):
        raise TypeError("its step is asynchronous, and a locked process can wait for nothing. Set `locked = False`")

    def play(example: Any, actions: Sequence[str]) -> Iterator[tuple[int, Reply]]:
        yield 0, play_episode(environment, example, actions)

    play_episode(environment, example, ["1"])
    return play


def play_episode(environment: Environment, example: Any, actions: Sequence[str]) -> Reply:
    """Return the last answer of an episode: to its last action, or what it began with.

    Args:
        environment: Environment, of which the episode gets a copy.
        example: Example of the episode.
        actions: Actions so far.

    """
    copied_environment, name = environment.copy(), type(environment).__name__
    method = "reset"
    try:
        turn = Turn(read_opening(copied_environment.reset(example), name) or "")
        method = "step"
        for action in actions:
            turn = read_turn(copied_environment.step(action), name)
        return pack_turn(turn, name)
    except TurnError as error:
        return Reply((), str(error), Outcome.MISREAD)
    except BaseException as error:  # noqa: BLE001  (an action may make an environment raise anything)
        return Reply((), f"{name}.{method}: {describe_error(error)}.", Outcome.RAISED)


def pack_turn(turn: Turn, name: str) -> Reply:
    """Return a turn as numbers, which are all that a worker can say: reward, done, and the characters of the text.

    Raises:
        TurnError: the text is too long.

    Example:
        >>> pack_turn(Turn("up", 1.0, True), "Lake").values
        [1.0, 1.0, 117.0, 112.0]

    """
    if len(turn.text) > MOST_CHARACTERS:
        raise TurnError(
            f"{name} said {len(turn.text):,} characters at a time, and a locked environment may say "
            f"{MOST_CHARACTERS:,}. Say less, or set `locked = False`."
        )
    return Reply([turn.reward, float(turn.done), *map(float, map(ord, turn.text))])


def unpack_turn(reply: Reply, name: str) -> Turn | TurnError:
    """Return the turn of a reply, or why there is none."""
    if reply.outcome in (Outcome.RAISED, Outcome.MISREAD):
        return TurnError(reply.fault)
    if len(reply.values) < 2:
        return TurnError(f"{name}: {reply.fault}.")
    reward, is_done, *characters = reply.values
    try:
        return read_turn(
            Turn("".join(chr(int(character or 0)) for character in characters), reward, is_done == 1), name
        )
    except TurnError as error:
        return error
    except (ValueError, OverflowError):
        return TurnError(f"{name}: {FORGED_FAULT}.")
