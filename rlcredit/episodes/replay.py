"""Episodes that are played again: environments say the same to the same actions, as all that continues one supposes."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from rlcredit.base.exit_status import RunStopped
from rlcredit.episodes.environment import Environment, Turn
from rlcredit.episodes.episode_table import EpisodeTable, hash_observation, open_episode, step_environments

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example

TRIAL_ACTIONS = ("1", "a", "", "left", "7 + 8")
"""Actions of the episode that is played twice."""

REPLAY_REPAIR = "Draw what is random from example.metadata['seed'], and keep nothing outside of the object."
"""What to do about an environment that says something else the second time."""


def refuse_changing_environment(environment: Environment, example: "Example") -> None:
    """Play one episode twice, and refuse an environment that does not begin, or is another the second time.

    Args:
        environment: Environment.
        example: Example of the episode.

    Raises:
        ValueError: with what it said the first time and the second.

    """
    name = type(environment).__name__
    if fault := open_episode(environment, example).fault:
        raise ValueError(f"data.init_args.environment: {fault}")
    plays = [play_actions(environment, example) for _ in range(2)]
    for first_text, second_text in zip(*plays, strict=False):
        if first_text != second_text:
            raise ValueError(
                f"data.init_args.environment: {name} said {first_text!r:.80} and, to the same "
                f"actions in a second episode, "
                f"{second_text!r:.80}. {REPLAY_REPAIR}"
            )


def play_actions(environment: Environment, example: "Example") -> list[str]:
    """Return an environment's first observation and its answers to the trial actions, as texts."""
    episode = open_episode(environment, example)
    if episode.fault:
        return [episode.fault]
    answers = [episode.observations[0]]
    for action in TRIAL_ACTIONS:
        episode.actions.append(action)
        (answer,) = step_environments([episode], type(environment).__name__)
        answers.append(str(answer))
        if not isinstance(answer, Turn) or answer.done:
            break
    return answers


def replay_turns(table: EpisodeTable, turns: Sequence[Sequence[Sequence[int]]], states: Tensor) -> Iterator[int]:
    """Have episodes take turns that they have taken before; stop before every turn, and yield its number.

    An episode that has taken all its turns stays where it stands.

    Args:
        table: Episodes that have begun, N of them.
        turns: Tokens of the turns that each episode is to take.
        states: Hash of the observation that each turn acted on, one more than turns, shape ``(N, K)``.

    Raises:
        RunStopped: an environment says something else than it did.

    """
    for number in range(max(map(len, turns)) + 1):
        for episode, row_turns, state in zip(table.episodes, turns, states[:, number].tolist(), strict=True):
            texts = episode.observations[number:]
            if len(row_turns) >= number and list(map(hash_observation, texts)) != [state]:
                raise RunStopped(
                    f"data.init_args.environment: {table.name} said {episode.fault or texts!r:.80} "
                    f"before turn {number + 1} when "
                    f"an episode was replayed, and something else when it was sampled. {REPLAY_REPAIR}"
                )
        yield number
        rows = [row for row, row_turns in enumerate(turns) if len(row_turns) > number]
        if rows:
            table.answer_turns(rows, [turns[row][number] for row in rows])
