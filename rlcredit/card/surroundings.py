"""The condition in which an operator is judged that was named alone: what stands above it, so that credit follows."""

import inspect
from typing import Any

from callbacks.base import CreditOperator
from callbacks.contract import Contract
from callbacks.lints import usual_writer
from rlcredit.inputs import strict_yaml
from rlcredit.inputs.found import shipped
from rlcredit.rollout import MEANINGFUL


def surrounded(cls: type[CreditOperator], path: str) -> dict[str, Any]:
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
            return _shortest(cls)
        if needed:
            entry = f"{{class_path: {path}, init_args: {{{', '.join(f'{name}: ...' for name in needed)}}}}}"
            raise ValueError(f"{cls.__name__} has no default for {', '.join(needed)}. Name a condition with {entry}.")
        written = ", ".join(sorted(cls.writes))
        raise ValueError(
            f"{cls.__name__} writes {written}, not advantages alone. Name a condition in which it leads to credit."
        )
    above = [_usual("advantages")] if "advantages" in cls.reads else []
    stack = [*(writer.__name__ for writer in [*above, *_writers(cls)]), path]
    return {"condition": cls.__name__, "trainer": {"callbacks": stack}}


def _writers(cls: type[Contract]) -> list[type[Contract]]:
    """Return the usual operators that write what one reads, in the order of a stack."""
    stack: list[type[Contract]] = []
    for name in sorted(cls.reads - MEANINGFUL):
        writer = _usual(name)
        stack += [above for above in [*_writers(writer), writer] if above not in stack]
    return stack


def _usual(name: str) -> type[Contract]:
    from callbacks.episode.grpo import GRPO  # noqa: PLC0415

    writer = GRPO if name == "advantages" else usual_writer(name)
    if writer is None:
        raise ValueError(f"nothing that is shipped writes `{name}`. Name a condition in which something does.")
    return writer


def _shortest(cls: type[CreditOperator]) -> dict[str, Any]:
    """Return the shipped condition with the fewest callbacks among those that list an operator."""
    conditions = []
    for file in sorted((shipped() / "conditions").glob("*/*.yaml")):
        content = strict_yaml.read(file)
        entries = content.get("trainer", {}).get("callbacks") or []
        names = [entry["class_path"] if isinstance(entry, dict) else entry for entry in entries]
        if cls.__name__ in names:
            conditions.append((len(names), file.stem, content))
    if not conditions:
        raise ValueError(f"{cls.__name__} leads to credit in no shipped condition. Name a condition that lists it.")
    *_, content = min(conditions, key=lambda found: found[:2])
    return {**content, "condition": cls.__name__}
