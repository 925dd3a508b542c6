"""The worker's side of a locked environment: play an episode from its beginning, and say how it was answered last."""

import inspect
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rlcredit.episodes.environment import Turn
from rlcredit.episodes.turn_values import TurnError, read_opening, read_turn
from rlcredit.verification.fault_attribution import describe_error
from rlcredit.verification.worker_replies import MOST_VALUES, Outcome, Reply
from rlcredit.verification.workers import FORGED_FAULT

MOST_CHARACTERS = MOST_VALUES - 2
"""Characters that a locked environment may say at a time."""


def make_player(content: bytes, folder: str) -> Callable[..., Iterator[tuple[int, Reply]]]:
    """Return the player of an environment's episodes, made before the process is locked.

    Args:
        content: Environment and an example, pickled; one turn is played, for what is imported late.
        folder: Folder where the environment's module may lie; the working directory of the run.

    Raises:
        BaseException: whatever importing raises.
        TypeError: the environment is asynchronous.

    """
    sys.path.append(folder)
    environment, example = pickle.loads(content)
    if inspect.iscoroutinefunction(environment.step):
        raise TypeError("its step is asynchronous, and a locked process cannot wait")

    def play(example: Any, actions: Sequence[str]) -> Iterator[tuple[int, Reply]]:
        yield 0, play_episode(environment.copy(), example, actions)

    list(play(example, ["1"]))
    return play


def play_episode(environment: Any, example: Any, actions: Sequence[str]) -> Reply:
    """Return the last answer of an episode as numbers, which are all that a worker can say: reward, done, characters.

    Args:
        environment: Environment of this episode alone.
        example: Example of the episode.
        actions: Actions so far.

    """
    name = type(environment).__name__
    try:
        turn = Turn(read_opening(environment.reset(example), name) or "")
        for action in actions:
            turn = read_turn(environment.step(action), name)
    except TurnError as error:
        return Reply((), str(error), Outcome.MISREAD)
    except BaseException as error:  # noqa: BLE001  (an action may make an environment raise anything)
        return Reply((), describe_error(error), Outcome.RAISED)
    if len(turn.text) > MOST_CHARACTERS:
        fault = f"{name} said {len(turn.text):,} characters at a time, and may say {MOST_CHARACTERS:,}. Say less."
        return Reply((), fault, Outcome.MISREAD)
    return Reply([turn.reward, float(turn.done), *map(float, map(ord, turn.text))])


def read_reply(reply: Reply, name: str) -> Turn | TurnError:
    """Return the turn of a reply, or why there is none."""
    if len(reply.values) < 2:
        return TurnError(reply.fault if reply.outcome is Outcome.MISREAD else f"{name}: {reply.fault}.")
    reward, is_done, *characters = reply.values
    try:
        return read_turn(Turn("".join(chr(int(code or 0)) for code in characters), reward, is_done == 1), name)
    except (ValueError, OverflowError):
        return TurnError(f"{name}: {FORGED_FAULT}.")
