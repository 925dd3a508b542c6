"""Environments as TRL's ``environment_factory`` takes them: public methods are tools, which a policy calls by name."""

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from transformers.utils.chat_template_utils import get_json_schema

from rlcredit.config.class_paths import import_class_path
from rlcredit.decoding.prefix_episodes import run_at_once
from rlcredit.episodes.environment import Environment, Turn

if TYPE_CHECKING:
    from rlcredit.tasks.example import Example

TOOL_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
"""A call as Qwen and Hermes write it."""

BARE_CALL = re.compile(r'\s*\{\s*"(?:name|type)"\s*:')
"""How an action begins that is a call as Llama 3 writes it."""

RESERVED_METHODS = ("reset", "get_reward")
"""Public methods that are no tools."""


class ToolEnvironment(Environment):
    """An environment of tools: a class with ``reset(**row)``, tools as public methods, and perhaps ``get_reward()``.

    An action that calls tools is answered by what they return, one a line; one that calls none ends the episode. So
    does an object whose attribute ``done`` is true. A turn's reward is what ``get_reward`` has risen by, so that their
    sum is its last value; without ``get_reward`` the task's verifier judges the last action.

    Args:
        factory: Class, or function that makes an object, or the dotted path of one.
        plain: Whether an action is no call but the text for the only tool, which takes one argument: for policies that
            write raw text, or whose chat template shows no tools.
        is_graded: Whether ``get_reward`` returns other numbers than one and zero.

    Raises:
        ValueError: objects have no ``reset`` or no tool, a tool has no typed docstring, or several are to be plain.

    """

    def __init__(self, factory: str | Callable[[], Any], plain: bool = False, is_graded: bool = False) -> None:
        self.factory = import_class_path(factory) if isinstance(factory, str) else factory
        self.plain, self.is_graded = plain, is_graded
        self.name = getattr(self.factory, "__name__", str(factory))
        self.item = self.factory()
        self.reward = 0.0
        methods = self._list_methods()
        if not callable(getattr(self.item, "reset", None)) or not methods:
            raise ValueError(f"ToolEnvironment: {self.name} needs a method reset(**row) and a tool, a public method.")
        if plain and (len(methods) > 1 or len(inspect.signature(*methods.values()).parameters) != 1):
            raise ValueError(
                f"ToolEnvironment: plain takes a class with one tool of one argument, and {self.name} has "
                f"{', '.join(methods)}. Leave plain out."
            )
        self.slow = any(map(inspect.iscoroutinefunction, methods.values()))
        self.tools = () if plain else tuple(self._describe_tool(method) for method in methods.values())

    def _list_methods(self) -> dict[str, Callable[..., Any]]:
        names = [name for name, _ in inspect.getmembers(type(self.item), inspect.isfunction)]
        return {name: getattr(self.item, name) for name in names if name not in RESERVED_METHODS and name[0] != "_"}

    def _describe_tool(self, method: Callable[..., Any]) -> dict[str, Any]:
        try:
            return get_json_schema(method)
        except Exception as error:  # noqa: BLE001  (a docstring may break its parser anyhow)
            raise ValueError(
                f"ToolEnvironment: {self.name}.{method.__name__} is no tool: {' '.join(str(error).split())} Give its "
                "arguments types, and a docstring that describes it and each of them below `Args:`."
            ) from None

    def reset(self, example: "Example") -> str | None:
        """Begin an episode with a new object; a text that its ``reset`` returns stands behind the question."""
        self.item, self.reward = self.factory(), 0.0
        row, parameters = example.list_columns(), inspect.signature(self.item.reset).parameters.values()
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            row = {parameter.name: row[parameter.name] for parameter in parameters if parameter.name in row}
        opening = self.item.reset(**row)
        if opening is None:
            return None
        if not isinstance(opening, str) or not isinstance(example.question, str):
            place = "a question that has turns" if isinstance(opening, str) else "a question"
            raise ValueError(f"{self.name}.reset returned {opening!r:.80} for {place}. Return None.")
        return example.question + opening

    def step(self, action: str) -> Any:
        """Answer an action, at once or, where a method is asynchronous, when it is awaited."""
        turn = self._answer_action(action)
        return turn if self.slow else run_at_once(turn)

    async def _answer_action(self, action: str) -> Turn:
        calls = [action] if self.plain else list(find_calls(action))
        results = [await self._call_tool(call) for call in calls]
        is_done = not calls or bool(getattr(self.item, "done", False))
        return Turn("\n".join(results), await self._measure_gain(), is_done)

    async def _call_tool(self, call: str) -> str:
        """Return the result of a call, or its error as TRL tells it."""
        methods = self._list_methods()
        try:
            if self.plain:
                (method,) = methods.values()
                result = method(call)
            else:
                name, arguments = read_call(call)
                if name not in methods:
                    raise ValueError(f"Tool {name} not found. There are: {', '.join(methods)}.")
                result = methods[name](**arguments)
            return str(await result if inspect.isawaitable(result) else result)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (an action may make a tool raise anything)
            return str({"error": str(error)})

    async def _measure_gain(self) -> float | None:
        """Return the rise of the reward since the last turn; None if the object gives none."""
        if not hasattr(self.item, "get_reward"):
            return None
        reward = self.item.get_reward()
        earlier_reward, self.reward = self.reward, await reward if inspect.isawaitable(reward) else reward
        return self.reward - earlier_reward


def find_calls(action: str) -> Iterator[str]:
    """Yield the texts of the calls in an action.

    Example:
        >>> [list(find_calls(text)) for text in ('So: <tool_call>{"name": "add"}</tool_call>', "The sum is 7.")]
        [['{"name": "add"}'], []]

    """
    bare_action = action.replace("<|python_tag|>", "")
    texts = TOOL_CALL.findall(action) or ([bare_action] if BARE_CALL.match(bare_action) else [])
    yield from map(str.strip, texts)


def read_call(text: str) -> tuple[str, Mapping[str, Any]]:
    """Return name and arguments of a call, or raise a ValueError that tells how one is written."""
    expectation = 'Expected {"name": ..., "arguments": {...}}.'
    try:
        call = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The call is not valid JSON: {error}. {expectation}") from None
    fields = call.get("function", call) if isinstance(call, dict) else {}
    arguments = fields.get("arguments", fields.get("parameters", {})) if isinstance(fields, dict) else None
    if not isinstance(arguments, dict) or not isinstance(fields.get("name"), str):
        raise ValueError(f"The call is {text!r:.80}. {expectation}")
    return fields["name"], arguments
