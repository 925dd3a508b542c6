"""Descriptions of episodes: what answers the policy, what ends a turn and an episode, and what they earn."""

from collections.abc import Iterator

from rlcredit.base.text_escaping import escape_controls
from rlcredit.decoding.sampling import Sampling
from rlcredit.episodes.environment import Environment
from rlcredit.episodes.episode_table import open_episode, step_environments
from rlcredit.episodes.turn_values import TurnError
from rlcredit.tasks.example import Example
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule

TRIED_ACTION = "1"
"""Action that a preview of an exchange takes."""


def describe_episodes(module: PolicyModule, task: Task, call: str) -> Iterator[str]:
    """Yield lines about the episodes of a task: environment, limits, how turns are written, and reward.

    Args:
        module: Module; it is not loaded.
        task: Task; it is not loaded.
        call: Environment as the call that made it.

    """
    if task.environment is None:
        return
    turns, tokens = task.turn_limits
    yield f"{call}, {_describe_place(task.environment)}"
    cut = "" if tokens is None else f"a turn is cut at {tokens} tokens and taken as it stands; "
    yield f"{cut}an episode ends after {turns} turns as it stands"
    yield f"it is cut at {module.sampling.max_tokens} tokens, sampled and read together (model.sampling.max_tokens)"
    if module.policy.prompt.chat:
        yield "turns are messages of the chat template; the policy's end with its stop token"
    else:
        yield f"turns are raw text, the policy's and the environment's, each up to {module.policy.prompt.turn_end!r}"
    verdict = "one and zero" if not task.environment.is_graded else f"graded, and right from {task.solved_at:g} on"
    yield f"reward: the sum over its turns, {verdict}; where there is none, the last turn is judged as an answer"
    if excess := find_turn_excess(task, module.sampling):
        yield excess


def _describe_place(environment: Environment) -> str:
    if environment.locked:
        return "in locked processes"
    if environment.is_awaited:
        return "in this process, slow: rows wait for each other, and all are awaited together"
    return "in this process"


def find_turn_excess(task: Task, sampling: Sampling) -> str | None:
    """Return a warning if not all turns of an episode fit into its tokens; None if they do."""
    turns, tokens = task.turn_limits
    if task.environment is None or tokens is None or turns * tokens <= sampling.max_tokens:
        return None
    return (
        f"warning: {turns} turns of {tokens} tokens are {turns * tokens:,} tokens without what is read, and "
        f"model.sampling.max_tokens is {sampling.max_tokens:,}. Longer episodes are cut; raise it, or lower "
        "data.init_args.turn_tokens."
    )


def preview_exchange(environment: Environment, example: Example) -> Iterator[str]:
    """Yield the answer of an environment to a first action, line by line."""
    episode = open_episode(environment, example)
    episode.actions.append(TRIED_ACTION)
    (answer,) = step_environments([episode], type(environment).__name__)
    yield f"what the environment answers to the action {TRIED_ACTION!r}"
    if isinstance(answer, TurnError):
        yield f"  {answer}"
        return
    yield from (f"  | {line}" for line in escape_controls(answer.text).split("\n"))
    reward = "no reward" if answer.reward is None else f"reward {answer.reward:g}"
    yield f"  {reward}; the episode {'ends' if answer.done else 'goes on'}"
