"""Whether an environment says the same to the same actions, as a run that is continued must suppose."""

from typing import TYPE_CHECKING

from rlcredit.episodes.environment import Environment, Turn
from rlcredit.episodes.episode_table import open_episode, step_environments

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example

TRIAL_ACTIONS = ("1", "a", "", "left", "7 + 8")
"""Actions of the episode that is played twice."""


def refuse_changing_environment(environment: Environment, example: "Example") -> None:
    """Play one episode twice, and refuse an environment that does not begin, or is another the second time.

    Args:
        environment: Environment.
        example: Example of the episode.

    Raises:
        ValueError: with what it said once and then.

    """
    name = type(environment).__name__
    if fault := open_episode(environment, example).fault:
        raise ValueError(f"data.environment: {fault}")
    plays = [play_actions(environment, example) for _ in range(2)]
    for once, again in zip(*plays, strict=False):
        if once != again:
            raise ValueError(
                f"data.environment: {name} said {once!r:.80} and, to the same actions in a second episode, "
                f"{again!r:.80}. Draw what is random from example.metadata['seed'], and keep nothing outside of the "
                "object."
            )


def play_actions(environment: Environment, example: "Example") -> list[str]:
    """Return an environment's first observation and its answers to the trial actions, as texts."""
    episode = open_episode(environment, example)
    if episode.fault:
        return [episode.fault]
    said = [episode.observations[0]]
    for action in TRIAL_ACTIONS:
        episode.actions.append(action)
        (answer,) = step_environments([episode], type(environment).__name__)
        said.append(str(answer))
        if not isinstance(answer, Turn) or answer.done:
            break
    return said
