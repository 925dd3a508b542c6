"""Call reward functions in TRL's convention in the judging process: one prompt, its completions, and its columns."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from rlcredit.verification.fault_attribution import AT_FAULT, judge_or_blame
from rlcredit.verification.user_callable import import_user_callable

SIGNATURE = "(prompts, completions, **columns) -> list[float | None]"

UNTOLD, NOT_FINITE = math.nan, math.inf
"""Answers of a worker that are no rewards: the function fails with the reference as well, and it returned NaN or an
infinity. See also :data:`~rlcredit.verification.fault_attribution.AT_FAULT`."""

TAKEN = ("prompts", "completions", "prompt", "completion", "completion_ids", "trainer_state", "log_extra", "log_metric")
"""Names to which TRL gives a meaning of its own; columns with these names are left out."""

KEYWORDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

ChatText = str | Sequence[Mapping[str, str]]
"""A prompt or a completion: a text, or the messages of a chat."""

RewardJudge = Callable[[ChatText, int, "RewardCall"], list[float | None]]
"""Function of a reference, the place of a reward function, and what that is called with."""


class RewardCall(NamedTuple):
    """What a reward function is called with.

    Attributes:
        prompt: Prompt, as a text or as messages.
        completions: Completions of the prompt in the same form.
        columns: Column values of the question, by name.
        reference: Reference answer as if it were a completion.
        steps: Optimizer steps taken, and those that the run will take.

    """

    prompt: ChatText
    completions: Sequence[ChatText]
    columns: Mapping[str, Any]
    reference: ChatText
    steps: tuple[int, int] = (0, 0)


def load_reward_function(path: str, folder: str) -> Callable[..., Any]:
    """Import a reward function; see :func:`~rlcredit.verification.user_callable.import_user_callable`.

    Args:
        path: Dotted path of the function or class.
        folder: Folder where modules may lie too; the working directory of the run.

    Raises:
        Exception: whatever importing raises.
        TypeError: it cannot be called, or is asynchronous.

    """
    function = import_user_callable(path, folder, SIGNATURE)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        raise TypeError("it is asynchronous, and a locked process has nothing to wait for. Write a plain function")
    return function


def give_rewards(function: Callable[..., Any], call: RewardCall, completions: Sequence[ChatText]) -> list[float | None]:
    """Call a reward function by keywords, as TRL does; one without ``**kwargs`` is given what it names.

    Args:
        function: Reward function.
        call: Prompt, columns and steps.
        completions: Completions of the prompt that are to be rewarded.

    Raises:
        TypeError: it needs something that is not given, or did not return a number or None for each completion.

    Example:
        >>> call = RewardCall("4 + 3 =", ["8", "7"], {"answer": "7"}, "7")
        >>> give_rewards(lambda completions, **_: [-1.0, None], call, call.completions)
        [-1.0, None]

    """
    number = len(completions)
    offered: dict[str, Any] = {name: [value] * number for name, value in call.columns.items() if name not in TAKEN}
    offered |= {"prompts": [call.prompt] * number, "completions": list(completions)}
    offered["trainer_state"] = SimpleNamespace(global_step=call.steps[0], max_steps=call.steps[1])
    offered |= {"log_extra": _pass_over, "log_metric": _pass_over}
    parameters = inspect.signature(function).parameters.values()
    needed = {each.name: each.default is each.empty for each in parameters if each.kind in KEYWORDS}
    if missing := [name for name, required in needed.items() if required and name not in offered]:
        there = ", ".join(name for name in offered if name not in TAKEN)
        raise TypeError(f"it needs `{missing[0]}`, which is not given; the columns of the question are {there}")
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        offered = {name: value for name, value in offered.items() if name in needed}
    return _read_rewards(function(**offered), number)


def _pass_over(*_: Any, **__: Any) -> None:
    """Accept what a function wants logged: a locked process can tell nobody."""


def _read_rewards(returned: Any, number: int) -> list[float | None]:
    """Return rewards as numbers, :data:`NOT_FINITE` for NaN and infinities."""
    if isinstance(returned, str) or not hasattr(returned, "__len__") or len(returned) != number:
        raise TypeError(f"it returned {returned!r:.80}; expected a list with a reward for each of {number} completions")
    if odd := [each for each in returned if each is not None and not hasattr(each, "__float__")]:
        raise TypeError(f"it returned {odd[0]!r:.80} as a reward; expected a number or None")
    rewards = [None if each is None else float(each) for each in returned]
    return [each if each is None or math.isfinite(each) else NOT_FINITE for each in rewards]


def prepare_reward_trial(path: str, folder: str, example: RewardCall) -> Callable[[], Any]:
    """Import a reward function, and return what asks it about an example.

    Args:
        path: Dotted path of the function.
        folder: Folder that it is imported from, see :func:`load_reward_function`.
        example: What it is asked about.

    """
    function = load_reward_function(path, folder)
    return lambda: give_rewards(function, example, example.completions)


def make_reward_judge(paths: Sequence[str], folder: str, example: RewardCall) -> RewardJudge:
    """Return what calls reward functions; made in the worker, where each is called once before the process is locked.

    If a call raises, its completions are tried one by one: what raises alone is at fault, or the function itself if it
    raises with the reference, too.

    Args:
        paths: Dotted paths of the functions.
        folder: Folder that they are imported from, see :func:`load_reward_function`.
        example: What they are asked about first, so that what is imported late has been imported.

    """
    functions = [load_reward_function(path, folder) for path in paths]
    for function in functions:
        give_rewards(function, example, example.completions)

    def reward(_: ChatText, place: int, call: RewardCall) -> list[float | None]:
        try:
            return give_rewards(functions[place], call, call.completions)
        except Exception:  # noqa: BLE001  (a completion may make a function raise anything)
            return [_reward_or_blame(functions[place], call, each) for each in call.completions]

    return reward


def _reward_or_blame(function: Callable[..., Any], call: RewardCall, completion: ChatText) -> float | None:
    """Return the reward of a completion by itself, or what says who is to blame that it has none."""
    found = judge_or_blame(
        lambda: give_rewards(function, call, [completion]), lambda: give_rewards(function, call, [call.reference])
    )
    if isinstance(found, list):
        return found[0]
    return UNTOLD if found is None else AT_FAULT
