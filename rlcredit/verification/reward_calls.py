"""Call reward functions in TRL's convention in the judging process: one prompt, its completions, and its columns."""

import inspect
import math
import numbers
import re
import reprlib
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

from rlcredit.verification.fault_attribution import UNTOLD_VALUE
from rlcredit.verification.user_judge import is_asynchronous
from rlcredit.verification.worker_replies import Outcome, Reply

REWARD_SIGNATURE = "(prompts, completions, **columns) -> list[float | None]"

TRL_NAMES = re.findall(
    r"\w+", "prompts completions prompt completion completion_ids trainer_state log_extra log_metric"
)
"""Names to which TRL gives a meaning of its own; columns with these names are left out."""

KEYWORD_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

ChatText = str | Sequence[Mapping[str, str]]
"""A prompt or a completion: a text, or the messages of a chat."""


class RewardCall(NamedTuple):
    """What a reward function is called with: by keywords, as TRL does; one without ``**kwargs`` is given what it names.

    Attributes:
        prompt: Prompt, as a text or as messages.
        completions: Completions of the prompt in the same form.
        columns: Column values of the question, by name.
        reference: Reference answer as if it were a completion; None or empty where there is none.
        steps: Optimizer steps taken, and those that the run will take.

    Example:
        >>> call = RewardCall("4 + 3 =", ["8", "7"], {"answer": "7"}, "7")
        >>> call.read_values(call.call_function(lambda completions, **_: [-1.0, None])).values
        [-1.0, None]

    """

    prompt: ChatText
    completions: Sequence[ChatText]
    columns: Mapping[str, Any]
    reference: ChatText | None
    steps: tuple[int, int] = (0, 0)
    misread = Outcome.MISREAD  # no field: what a function returns is its own fault

    def about(self, completions: Sequence[ChatText]) -> Self:
        """Return the same call about other completions."""
        return self._replace(completions=completions)

    def describe(self) -> str:
        """Return the call in words."""
        return f"called with {len(self.completions)} completions to the prompt {self.prompt!r:.80}"

    @classmethod
    def check_signature(cls, function: Callable[..., Any]) -> None:
        """Accept every function: what it needs is compared with the columns when it is called."""

    def call_function(self, function: Callable[..., Any]) -> Any:
        """Call a reward function.

        Raises:
            TypeError: it needs something that is not given.

        """
        count = len(self.completions)
        offer: dict[str, Any] = {name: [value] * count for name, value in self.columns.items() if name not in TRL_NAMES}
        offer |= {"prompts": [self.prompt] * count, "completions": list(self.completions)}
        offer["trainer_state"] = SimpleNamespace(global_step=self.steps[0], max_steps=self.steps[1])
        offer |= {"log_extra": _pass_over, "log_metric": _pass_over}
        parameters = inspect.signature(function).parameters
        needs = {name: p.default is p.empty for name, p in parameters.items() if p.kind in KEYWORD_KINDS}
        if missing := [name for name in needs if needs[name] and name not in offer]:
            column_names = ", ".join(name for name in offer if name not in TRL_NAMES)
            advice = ". A verifier is named in data.init_args.verifier" if "completion" in missing else ""
            raise TypeError(
                f"it needs `{missing[0]}`, which is not given; the columns of the question are {column_names}{advice}"
            )
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            offer = {name: value for name, value in offer.items() if name in needs}
        return function(**offer)

    def read_values(self, result: Any) -> Reply:
        """Return the rewards that a function has returned; what is not finite as float32 is untold, with a fault.

        Raises:
            TypeError: it is no list of a number or None for each completion.

        """
        try:
            values = read_rewards(result, len(self.completions))
        except TypeError as error:
            raise TypeError(f"it returned {error}") from None
        odd = [place for place, value in enumerate(values) if value is not None and not math.isfinite(value)]
        if not odd:
            return Reply(values)
        text = f"it returned a reward that is not finite as float32 for the completion {self.completions[odd[0]]!r:.80}"
        return Reply([UNTOLD_VALUE if place in odd else value for place, value in enumerate(values)], text)


def read_rewards(result: Any, count: int) -> list[float | None]:
    """Return rewards as numbers, whatever a function has returned them as.

    Args:
        result: List or tuple, or one-dimensional array or tensor, of numbers and None.
        count: Number of completions.

    Returns:
        Numbers, those that are too large for float32 as an infinity.

    Raises:
        TypeError: it is something else, or has another length.

    Example:
        >>> read_rewards((True, None, 1e300), 3)
        [1.0, None, inf]

    """
    values = result.tolist() if hasattr(result, "tolist") else result
    if not isinstance(values, list | tuple) or len(rows := list(values)) != count:
        raise TypeError(f"{_describe_value(result)}; expected a list of {count}, a number or None per completion")
    return [_read_reward(value) for value in rows]


def _read_reward(value: Any) -> float | None:
    number = value.tolist() if hasattr(value, "tolist") else value
    if number is None:
        return None
    if not isinstance(number, numbers.Real | Decimal):
        raise TypeError(f"{_describe_value(value)} as the reward of a completion; expected a number or None")
    try:
        struct.pack("<f", float(number))
    except OverflowError:
        return math.inf
    return float(number)


def _describe_value(value: Any) -> str:
    """Return a value of a user's, shortened, with its type, and its length if it is a list."""
    length = f" of {len(value)}" if type(value) in (list, tuple) else ""
    display = re.sub(r"<([\w.]+)[^>]*>", r"<\1>", reprlib.repr(value))  # without addresses, which say nothing
    return "None" if value is None else f"{display} ({type(value).__name__}{length})"


def _pass_over(*_: Any, **__: Any) -> None:
    """Accept what a function wants logged: its process can tell nobody."""


def check_rewards(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reward function of another trainer that returns rewards or raises; see :func:`read_rewards`.

    Args:
        function: Function that takes ``completions`` by keyword, perhaps asynchronous.

    Raises:
        ValueError: when it returns anything else.

    """
    name = f"{function.__module__}.{function.__qualname__}" if inspect.isfunction(function) else type(function).__name__

    def read(result: Any, count: int) -> list[float | None]:
        try:
            return read_rewards(result, count)
        except TypeError as error:
            raise ValueError(f"{name} returned {error}.") from None

    async def check_later(completions: Sequence[Any], **given: Any) -> list[float | None]:
        count = len(completions)
        return read(await function(completions=completions, **given), count)

    def check(completions: Sequence[Any], **given: Any) -> list[float | None]:
        count = len(completions)
        return read(function(completions=completions, **given), count)

    return check_later if is_asynchronous(function) else check
