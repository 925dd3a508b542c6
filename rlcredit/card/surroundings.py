"""The condition in which an operator is judged that was named alone: what stands above it, so that credit follows."""

import inspect
from typing import Any

from callbacks.base import CreditOperator
from callbacks.contract import OperatorContract
from callbacks.lints import find_usual_writer
from rlcredit.inputs import strict_yaml
from rlcredit.inputs.found import find_configs_folder
from rlcredit.rollout import MEANINGFUL


def build_default_condition(cls: type[CreditOperator], path: str) -> dict[str, Any]:
    """Return the condition in which an operator with its default arguments assigns credit to what GRPO has given.

    One that writes advantages alone stands below the usual writers of what it reads; another is judged in the shortest
    shipped condition that lists it.

    Args:
        cls: the operator.
        path: by which a condition names it.

    Raises:
        ValueError: no such condition is known; with the repair.

    """
    if not cls.writes:
        raise ValueError(f"{cls.__name__} is a probe: it watches credit and assigns none.")
    needed = [
        name
        for name, parameter in list(inspect.signature(cls.__init__).parameters.items())[1:]
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    ]
    if cls.writes != {"advantages"} or needed:
        if cls.__module__.startswith("callbacks."):
            return _read_shortest_condition(cls)
        if needed:
            entry = f"{{class_path: {path}, init_args: {{{', '.join(f'{name}: ...' for name in needed)}}}}}"
            raise ValueError(f"{cls.__name__} has no default for {', '.join(needed)}. Name a condition with {entry}.")
        written = ", ".join(sorted(cls.writes))
        raise ValueError(
            f"{cls.__name__} writes {written}, not advantages alone. Name a condition in which it leads to credit."
        )
    above = [_find_usual_writer("advantages")] if "advantages" in cls.reads else []
    stack = [*(writer.__name__ for writer in [*above, *_list_usual_writers(cls)]), path]
    return {"condition": cls.__name__, "trainer": {"callbacks": stack}}


def _list_usual_writers(cls: type[OperatorContract]) -> list[type[OperatorContract]]:
    """Return the usual operators that write what one reads, in the order of a stack."""
    stack: list[type[OperatorContract]] = []
    for name in sorted(cls.reads - MEANINGFUL):
        writer = _find_usual_writer(name)
        stack += [above for above in [*_list_usual_writers(writer), writer] if above not in stack]
    return stack


def _find_usual_writer(name: str) -> type[OperatorContract]:
    from callbacks.episode.grpo import GRPO  # noqa: PLC0415

    writer = GRPO if name == "advantages" else find_usual_writer(name)
    if writer is None:
        raise ValueError(f"nothing that is shipped writes `{name}`. Name a condition in which something does.")
    return writer


def _read_shortest_condition(cls: type[CreditOperator]) -> dict[str, Any]:
    """Return the shipped condition with the fewest callbacks among those that list an operator."""
    conditions = []
    for file in sorted((find_configs_folder() / "conditions").glob("*/*.yaml")):
        content = strict_yaml.read_yaml(file)
        entries = content.get("trainer", {}).get("callbacks") or []
        names = [entry["class_path"] if isinstance(entry, dict) else entry for entry in entries]
        if cls.__name__ in names:
            conditions.append((len(names), file.stem, content))
    if not conditions:
        raise ValueError(f"{cls.__name__} leads to credit in no shipped condition. Name a condition that lists it.")
    *_, content = min(conditions, key=lambda found: found[:2])
    return {**content, "condition": cls.__name__}
