"""Faults of a configuration that a parser refuses: the key, the value given, what is accepted, and the repair."""

import copy
import inspect
import json
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from inspect import isabstract
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser

from rlcredit.base.messages import find_closest_name, suggest_name
from rlcredit.cli.name_suggestions import find_places_of_name
from rlcredit.cli.run_options import make_fit_parser
from rlcredit.cli.run_words import MLFLOW_FLAG, OUT_FLAG, resolve_run_words
from rlcredit.config.class_paths import (
    collect_argument_hints,
    explain_abstract_class,
    explain_failed_class_path,
    find_expected_classes,
    flatten_union,
    is_listed_class,
    list_parameter_names,
    load_named_class,
    walk_subclasses,
)
from rlcredit.config.reader import ENTRY_KEYS, Configuration, KeyPath, Roots, read_arguments

MAX_READ_LENGTH = 200
"""Characters of a message that people still read; a list of names that would make it longer is left out."""

_YAML_SWITCHES = {False: "`no`, `off` and `false`", True: "`yes`, `on` and `true`"}
"""How YAML lets one write a truth value."""

_TYPE_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "a mapping"}


def explain_failures(message: str, configuration: Configuration, roots: Roots) -> list[str]:
    """Return the faults of a configuration that a parser refuses, one or two sentences for each.

    Args:
        message: Message of the parser, told only where no fault is found.
        configuration: Configuration as it was read.
        roots: Type behind each top-level key.

    """
    if (entry_fault := _explain_stack_entry(configuration.values)) is not None:
        return [entry_fault]
    return [*_FaultFinder(configuration, roots).find_faults()] or [" ".join(message.split())]


def _explain_stack_entry(config: Mapping[str, Any]) -> str | None:
    """Show how to write an entry of the stack that is neither a name nor a class with arguments."""
    if "callbacks" in config:
        return "callbacks: no such key. A stack is written under trainer: {callbacks: [...]}."
    trainer = config.get("trainer")
    stack = trainer.get("callbacks") if isinstance(trainer, Mapping) else None
    if isinstance(stack, Mapping) and "class_path" not in stack:
        return (
            "trainer.callbacks: expected a list of operators, got a mapping. To change an argument of one of them, "
            "write `trainer.callbacks.OPERATOR.ARGUMENT: VALUE`."
        )
    for place, entry in enumerate(stack if isinstance(stack, list) else []):
        name, arguments = None, {}
        if isinstance(entry, str) and " - " in entry:
            name_above, _, second = entry.partition(" - ")
            return (
                f"trainer.callbacks[{place}]: YAML reads `{entry}` as one entry, because `- {second}` is indented "
                f"further than `- {name_above}`. Indent both alike."
            )
        if isinstance(entry, Mapping) and "class_path" in entry and (odd := set(entry) - set(ENTRY_KEYS)):
            if slips := {key: close for key in odd if (close := find_closest_name(str(key), ENTRY_KEYS))}:
                key, close = slips.popitem()
                return f"trainer.callbacks[{place}].{key}: no such key. Did you mean `{close}`?"
            name, arguments = entry["class_path"], {key: entry[key] for key in entry if key in odd}
        elif isinstance(entry, Mapping) and "class_path" not in entry and len(entry) == 1:
            name, arguments = next(iter(entry.items()))
        if name:
            pairs = arguments.items() if isinstance(arguments, Mapping) else ()
            call_arguments = ", ".join(f"{key}={json.dumps(value)}" for key, value in pairs) or "..."
            return f"trainer.callbacks[{place}]: write {name}({call_arguments})."
    return None


class _FaultFinder:
    """Finds what no parser accepts, by the types of the places.

    Args:
        configuration: Configuration as it was read.
        roots: Type behind each top-level key.

    """

    def __init__(self, configuration: Configuration, roots: Roots) -> None:
        self.configuration = configuration
        self.config = configuration.values
        self.roots = roots

    def find_faults(self) -> Iterator[str]:
        """Yield a sentence for every fault, in the order of the keys."""
        for key, value in self.config.items():
            if key not in self.roots:
                yield self._explain_unknown_name((key,), None, list(self.roots))
            else:
                yield from self._find_value_faults((key,), value, self.roots[key])
        if "data" in self.roots and "data" not in self.config:
            yield "data: missing: nothing says what to ask. First name a file with a task: --config configs/tiny.yaml"

    def _find_value_faults(self, path: KeyPath, value: Any, hint: Any) -> Iterator[str]:
        if hint is None or is_accepted(value, hint):
            return
        inner = list(self._find_inner_faults(path, value, hint))
        yield from inner or [_explain_value(path, value, hint)]

    def _find_inner_faults(self, path: KeyPath, value: Any, hint: Any) -> Iterator[str]:
        """Yield the faults of what is in a list or class."""
        is_number = {int, float} & set(flatten_union(hint))
        bases = () if is_number else find_expected_classes(hint)
        if isinstance(value, list) and _find_item_hint(hint) is not hint:
            for place, item in enumerate(value):
                yield from self._find_value_faults((*path, place), item, _find_item_hint(hint))
        elif bases and isinstance(value, str):
            if (cls := load_named_class(value, bases)) is None:
                yield _explain_unknown_class(path, value, bases[0])
            else:
                yield from self._find_missing_arguments(path, cls, {})
        elif isinstance(value, dict) and (bases or "class_path" in value):
            yield from self._find_class_faults(path, value, bases)

    def _find_class_faults(self, path: KeyPath, value: dict[str, Any], bases: Sequence[type]) -> Iterator[str]:
        name = value.get("class_path")
        cls = load_named_class(name, bases) if name else next(iter(bases))
        if cls is None:
            yield _explain_unknown_class(path, str(name), bases[0] if bases else None)
            return
        is_entry = name is not None or "init_args" in value
        arguments = read_arguments(value)
        inner = (*path, "init_args") if is_entry else path
        odd_keys = [key for key in value if key not in ENTRY_KEYS] if is_entry else []
        for key in odd_keys:
            yield f"{_render_path((*path, key))}: no such key.{suggest_name(key, ENTRY_KEYS)}"
        if not isinstance(value.get("init_args") or {}, dict):
            yield f"{_render_path(inner)}: expected a mapping, got {_cut_value(str(value['init_args']))}."
            return
        if reason := explain_abstract_class(cls, cls.__name__):
            yield f"{_render_path(path)}: {reason}"
            return
        parameters, hints = list_parameter_names(cls), collect_argument_hints(cls)
        for key, argument in arguments.items():
            if key not in parameters:
                yield self._explain_unknown_name((*inner, key), cls, parameters)
            else:
                yield from self._find_value_faults((*inner, key), argument, hints.get(key))
        yield from self._find_missing_arguments(path, cls, arguments)

    def _find_missing_arguments(self, path: KeyPath, cls: type, arguments: Mapping[str, Any]) -> Iterator[str]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        for parameter in list(parameters)[1:]:
            is_named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if is_named and parameter.default is parameter.empty and parameter.name not in {*arguments, "params"}:
                key = _render_path((*path, "init_args", parameter.name))
                yield f"{key}: missing, and {cls.__name__} needs it. Say it, as --{key} ..."

    def _explain_unknown_name(self, path: KeyPath, owner: type | None, names: Sequence[str]) -> str:
        """Name the key or parameter that an unknown one may mean."""
        key, root, wrong = _render_path(path), str(path[0]), str(path[-1])
        places = find_places_of_name(wrong, self.config, self.roots)
        suggestion = suggest_name(wrong, [*names, *ENTRY_KEYS] if owner else names)
        if relatives := self._find_related_classes(owner, wrong, path):
            verb = "has" if len(relatives) == 1 else "have"
            suggestion = f" {', '.join(relatives)} {verb} one: --{root} {relatives[-1]}."
        elif not suggestion and places:
            suggestion = f" Did you mean {_render_alternatives(places)}?"
        elif not suggestion and owner is None:
            suggestion = _render_suggestion(_find_key_of_flag(f"--{wrong}"))
        if owner is None:
            return f"{key}: no such key.{suggestion}"
        if not names:
            return f"{key}: `{owner.__name__}` takes no arguments."
        parameter_list = f" It accepts {', '.join(names)}." if names else ""
        sentence = f"{key}: `{owner.__name__}` has no parameter `{wrong}`.{suggestion}"
        return _append_if_read(sentence, parameter_list, " docs/reference/configuration.md lists those that it has.")

    def _find_related_classes(self, owner: type | None, name: str, path: KeyPath) -> list[str]:
        """Return the classes that could replace the one on a path and have the missing parameter."""
        base = self.roots.get(str(path[0]))
        if owner is None or base is None or owner is base or not issubclass(owner, base):
            return []
        return sorted(
            cls.__name__
            for cls in walk_subclasses(base)
            if _is_offered_class(cls) and name in list_parameter_names(cls)
        )


def is_accepted(value: Any, hint: Any) -> bool:
    """Whether a parser accepts a value at a place of a type.

    Example:
        >>> is_accepted("3", int), is_accepted("three", int | None), is_accepted(None, int | None)
        (True, False, True)

    """
    parser = ArgumentParser(exit_on_error=False)
    try:
        parser.add_argument("--value", type=hint)
        parser.parse_object({"value": copy.deepcopy(value)})
    except (ArgumentError, ValueError, TypeError, AttributeError):
        return False
    return True


def _explain_value(path: KeyPath, value: Any, hint: Any) -> str:
    key = _render_path(path)
    if isinstance(value, bool) and str in flatten_union(hint):
        word = str(value).lower()
        return f"{key}: expected a text, got {word}, as which YAML reads {_YAML_SWITCHES[value]}. Put quotes around it."
    return f"{key}: expected {describe_allowed_values(hint)}, got {_cut_value(str(value))}."


def describe_allowed_values(hint: Any) -> str:
    """Describe the values that a type accepts.

    Example:
        >>> describe_allowed_values(int | None), describe_allowed_values(typing.Literal["a", "b"] | float | int)
        ('a whole number', 'a, b or a number')

    """
    names: dict[str, None] = {}
    for member in flatten_union(hint):
        if typing.get_origin(member) is typing.Literal:
            names |= dict.fromkeys(map(str, typing.get_args(member)))
        elif member is not types.NoneType and getattr(member, "__name__", "") != "Tensor":
            names[_name_type(member)] = None
    if "a number" in names:
        names.pop("a whole number", None)
    *alternatives, final_name = names or ["nothing"]
    return f"{', '.join(alternatives)} or {final_name}" if alternatives else final_name


def _name_type(hint: Any) -> str:
    origin = typing.get_origin(hint) or hint
    if origin in _TYPE_NAMES:
        return _TYPE_NAMES[origin]
    return "a list" if origin in (list, tuple) else f"`{getattr(origin, '__name__', origin)}`"


def _find_item_hint(hint: Any) -> Any:
    """Return the type of the items of a list; that of the place itself if it says none."""
    lists = [member for member in flatten_union(hint) if typing.get_origin(member) is not None]
    return next((typing.get_args(member)[0] for member in lists if typing.get_args(member)), hint)


def _explain_unknown_class(path: KeyPath, name: str, base: type | None) -> str:
    key = _render_path(path)
    if "." in name:
        return f"{key}: {explain_failed_class_path(name)}"
    if not name.isprintable() or " " in name.partition("(")[0]:
        return f"{key}: no class `{name}`. Put a comma between two entries of a list."
    names = sorted({cls.__name__ for cls in walk_subclasses(base) if _is_offered_class(cls)}) if base else []
    class_list = f" There are {', '.join(names)}; any other by its dotted path." if names else ""
    sentence = f"{key}: no class `{name}`.{suggest_name(name, names)}"
    advice = " `rlcredit list` names all; any other by its dotted path." if names else " Name it by its dotted path."
    return _append_if_read(sentence, class_list, advice)


def _find_key_of_flag(flag: str) -> str | None:
    """Return the key that says in a configuration what a flag says on the command line."""
    option = make_fit_parser().find_meant_option(flag)
    return (
        resolve_run_words([option, "x"])[0].partition("=")[0].lstrip("-") if option in (OUT_FLAG, MLFLOW_FLAG) else None
    )


def _append_if_read(sentence: str, names: str, instead: str) -> str:
    """Return a sentence with a list of names, or with where they are listed if that is too long to be read."""
    return sentence + (names if names and len(f"error: {sentence}{names}") <= MAX_READ_LENGTH else instead)


def _cut_value(text: str) -> str:
    quotation = repr(text)
    return quotation if len(quotation) <= 60 else f"{quotation[:40]} .. {quotation[-15:]}"


def _is_offered_class(cls: type) -> bool:
    """Whether a class is meant for configurations, and not just imported by chance."""
    packages = ("callbacks.", "rlcredit.losses", "rlcredit.tasks.", "torch.optim.")
    module, name = cls.__module__, cls.__name__
    is_private = (
        isabstract(cls) or not is_listed_class(cls) or name.startswith("_") or module == "torch.optim.swa_utils"
    )
    return module.startswith(packages) and not is_private


def _render_path(path: Sequence[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _render_alternatives(paths: Sequence[KeyPath]) -> str:
    return " or ".join(f"`{_render_path(path)}`" for path in paths)


def _render_suggestion(close: str | None) -> str:
    return f" Did you mean `{close}`?" if close else ""
