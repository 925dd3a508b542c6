"""Readable errors of the command line: the key, the value given, the allowed values, and the likely intention."""

import json
import re
from collections.abc import Mapping, Sequence
from inspect import isabstract
from typing import Any

from rlcredit.cli.config_schema import (
    Roots,
    describe_allowed_values,
    find_class_at,
    find_value_at,
    walk_key_paths,
)
from rlcredit.cli.name_suggestions import (
    ENTRY,
    Names,
    find_closest_name,
    find_places_of_name,
    find_unknown_name,
    repair_path,
)
from rlcredit.cli.run_options import make_fit_parser
from rlcredit.cli.run_words import MLFLOW, OUT, resolve_run_words
from rlcredit.config.class_paths import list_parameter_names, walk_subclasses
from rlcredit.config.error_messages import MARK
from rlcredit.config.strict_yaml import shorten_name

READ = 200
"""Characters of a message that people still read; a list of names that would make it longer is left out."""

SWITCHES = {"False": "`no`, `off` and `false`", "True": "`yes`, `on` and `true`"}
"""How YAML lets one write a truth value, by the value in Python's words."""

TYPES = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false"}
"""Python's types in words."""

_BOILERPLATE = re.compile(
    r"Expected a <class 'NoneType'>|Not a valid subclass|Expected a path but|Does not validate|^\W*Errors:$|^$|"
    r"Problem with given class_path|Subclass types expect|a class path \(str\)|a dict with|a dict without|"
    r"^\W*(Given value|Subtypes|Parser key|Expected a dict-like)"
)

_CHOICE = re.compile(r"Expected an? typing\.Literal\[([^\]]*)\]")


def explain_parser_error(message: str, config: Mapping[str, Any], roots: Roots, options: Sequence[str]) -> str:
    """Return a parser's message as one or two sentences for people.

    Args:
        message: Message as jsonargparse wrote it.
        config: Content of the configuration files, merged.
        roots: Class behind each top-level key.
        options: Options that the command line accepts.

    """
    if message.startswith(("data.verifier: ", "data.rewards: ")):
        return message  # quotes what a user's function raised, which may read like a parser's words
    if correction := _explain_stack_entry(config):
        return correction
    if match := re.fullmatch(r"the following arguments are required: ([\w., ]+)", message.strip()):
        return _explain_missing_arguments(match[1].split(", "), config)
    if match := re.search(rf"{MARK}(.*?)(\. Got value: .*)?$", message, re.MULTILINE):
        key = found[1] if (found := re.search(r'Parser key "([\w.]+)"', message)) else ""
        return f"{_find_full_name(key, config)}: {match[1]}"
    if match := re.search(r"(?:Option|option) '([\w.]+)'", message):
        return _explain_unknown_key(match[1], config, roots)
    if match := re.search(r"unrecognized arguments: (\S+)", message):
        word = match[1].partition("=")[0]
        if not word.startswith("-"):
            return (
                f"{shorten_name(word)}: no such argument. Options begin with --, and a text with blanks needs quotes."
            )
        return _explain_unknown_option(word.lstrip("-"), config, roots, options)
    value = match[1] if (match := re.search(r"(?:Got|Given) value: (.*)", message)) else None
    key = _find_full_name(match[1], config, value) if (match := re.search(r'Parser key "([\w.]+)"', message)) else ""
    if value is not None and (allowed := describe_allowed_values(tuple(key.split(".")), config, roots)):
        return f"{key}: expected {allowed}, got {_cut_value(value)}."
    if match := re.search(r"Expected '([\w.]+)' to be a (?:function that returns|subclass of|class that)", message):
        wanted = base.__name__ if (base := find_class_at(tuple(key.split(".")), {}, roots)) else "class"
        return f"{key}: `{match[1]}` is no `{wanted}`, and no function that says it returns one. Name another class."
    if match := re.search(
        r"(?:Expected a dot import path string: |has no attribute ['\"]|No module named ')([\w.]+)", message
    ):
        return _explain_unknown_class(key, match[1], config, roots)
    if value in SWITCHES and "Expected a <class 'str'>" in message:
        return (
            f"{key}: expected a text, got {value.lower()}, as which YAML reads {SWITCHES[value]}. Put quotes around it."
        )
    if match := re.search(r"Expected an? (?:<class ')?([^.\n]+?)'?>?\. Got value: (.*)", message):
        shown = _cut_value(match[2])
        return f"{key}: expected {_name_type(match[1])}, got {shown}."
    return _extract_main_sentence(key, message)


def _explain_missing_arguments(names: Sequence[str], config: Mapping[str, Any]) -> str:
    """Name the missing arguments and the place where they belong."""
    if all(name.rpartition(".")[2] == "data" for name in names):
        return "no configuration is named. Say which one: --config configs/tiny.yaml"
    data = config.get("data")
    task = data.get("class_path") if isinstance(data, Mapping) else data
    paths = [name if "." in name or not task else f"data.init_args.{name}" for name in names]
    return f"{', '.join(paths)}: missing{f', and {task} needs it' if task else ''}. Say it, as --{paths[0]} ..."


def _explain_stack_entry(config: Mapping[str, Any]) -> str | None:
    """Show how to write an entry of the stack that is neither a name nor a class with arguments."""
    if "callbacks" in config:
        return "callbacks: no such key. A stack is written under trainer: {callbacks: [...]}."
    trainer = config.get("trainer")
    stack = trainer.get("callbacks") if isinstance(trainer, Mapping) else None
    for place, entry in enumerate(stack if isinstance(stack, list) else []):
        name, arguments = None, {}
        if isinstance(entry, str) and " - " in entry:
            first, _, second = entry.partition(" - ")
            return (
                f"trainer.callbacks[{place}]: YAML reads `{entry}` as one entry, because `- {second}` is indented "
                f"further than `- {first}`. Indent both alike."
            )
        if isinstance(entry, Mapping) and "class_path" in entry and (odd := set(entry) - set(ENTRY)):
            if slips := {key: close for key in odd if (close := find_closest_name(str(key), ENTRY))}:
                key, close = slips.popitem()
                return f"trainer.callbacks[{place}].{key}: no such key. Did you mean `{close}`?"
            name, arguments = entry["class_path"], {key: entry[key] for key in entry if key in odd}
        elif isinstance(entry, Mapping) and "class_path" not in entry and len(entry) == 1:
            name, arguments = next(iter(entry.items()))
        if name:
            given = arguments.items() if isinstance(arguments, Mapping) else ()
            written = ", ".join(f"{key}={json.dumps(value)}" for key, value in given) or "..."
            return f"trainer.callbacks[{place}]: write {name}({written})."
    return None


def _extract_main_sentence(key: str, message: str) -> str:
    """Return the most informative line of a message: a full sentence of the class that refused, if there is one."""
    lines = [line.strip().removeprefix("- ") for line in message.splitlines() if not _BOILERPLATE.search(line.strip())]
    sentences = [line for line in lines if line.endswith(".")]
    sentence = _CHOICE.sub(_render_choice, (sentences or lines or [re.sub(r"\s+", " ", message)])[0])
    value = match[1] if (match := re.search(r"Given value: (.*)", message)) else ""
    if "Namespace(" in value or " object at 0x" in value:
        value = ""
    text = sentence if sentences or not value else f"{sentence}, got {value}"
    if not lines and value:
        text = f"cannot be {value}."
    return f"{key}: {text}" if key else text


def _render_choice(choice: re.Match[str]) -> str:
    """Render a parser's name of a literal type as readable words."""
    return f"expected {choice[1].replace(', ', ' or ').replace(chr(39), '')}"


def _find_full_name(key: str, config: Mapping[str, Any], value: str | None = None) -> str:
    """Return the full path of a key that a parser names by its end, if only one path ends so."""
    path = _find_full_path(key, config, value)
    return _render_path(path) if path else key


def _find_full_path(key: str, config: Mapping[str, Any], value: str | None = None) -> Names | None:
    parts = tuple(key.split("."))
    ends = {path for path in walk_key_paths(config) if path[-len(parts) :] == parts}
    if len(ends) > 1 and value is not None:  # the place that holds what was refused
        ends = {path for path in ends if str(find_value_at(path, config)) == value}
    return ends.pop() if len(ends) == 1 and parts[0] not in config else None


def _render_path(path: Sequence[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _explain_unknown_option(name: str, config: Mapping[str, Any], roots: Roots, options: Sequence[str]) -> str:
    path = _find_full_path(name, config) or tuple(name.split("."))
    corrected = repair_path(path, config, roots)
    misplaced = len(path) == 1 or not corrected or len(corrected) < len(path)  # nothing is spelt like the whole of it
    if misplaced and (places := find_places_of_name(str(path[-1]), config, roots)):
        return f"--{_render_path(path)}: no such option. Did you mean {_render_alternatives(places, '--')}?"
    if corrected:
        return f"--{_render_path(path)}: no such option. Did you mean `--{_render_path(corrected)}`?"
    close = find_closest_name(name, [option.lstrip("-") for option in options if "." not in option])
    meant = _render_suggestion(f"--{close}" if close else make_fit_parser().find_meant_option(f"--{name}"))
    return f"--{_render_path(path)}: no such option.{meant or ' `rlcredit fit --help` lists those that there are.'}"


def _explain_unknown_key(name: str, config: Mapping[str, Any], roots: Roots) -> str:
    parts = tuple(name.split("."))
    ends = [path for path in walk_key_paths(config) if path[-len(parts) :] == parts] or [parts]
    path, slip = next(
        ((path, slip) for path in ends if (slip := find_unknown_name(path, config, roots))), (ends[0], None)
    )
    if slip is None:
        return f"{_render_path(path)}: no such key."
    where, wrong = _render_path(path[: slip.place + 1]), str(path[slip.place])
    meant = _render_suggestion(find_closest_name(wrong, slip.known))
    if relatives := _find_related_classes(slip.owner, wrong, path, roots):
        meant = f" {', '.join(relatives)} {'has' if len(relatives) == 1 else 'have'} one: --{path[0]} {relatives[-1]}."
    elif not meant and (places := find_places_of_name(wrong, config, roots)):
        meant = f" Did you mean {_render_alternatives(places)}?"
    elif not meant and slip.owner is None:
        meant = _render_suggestion(_find_key_of_flag(f"--{wrong}"))
    if slip.owner is None:
        return f"{where}: no such key.{meant}"
    allowed = [parameter for parameter in slip.known if parameter not in ENTRY]
    listed = f" It accepts {', '.join(allowed)}." if allowed else ""
    said = f"{where}: `{slip.owner.__name__}` has no parameter `{wrong}`.{meant}"
    return _append_if_read(said, listed, " docs/reference/configuration.md lists those that it has.")


def _find_key_of_flag(flag: str) -> str | None:
    """Return the key that says in a configuration what a flag says on the command line."""
    meant = make_fit_parser().find_meant_option(flag)
    return resolve_run_words([meant, "x"])[0].partition("=")[0].lstrip("-") if meant in (OUT, MLFLOW) else None


def _find_related_classes(owner: type | None, name: str, path: Names, roots: Roots) -> list[str]:
    """Return the classes that could replace the one on a path and have the missing parameter."""
    base = find_class_at(path[:1], {}, roots)
    if owner is None or base is None or owner is base or not issubclass(owner, base):
        return []
    return sorted(
        cls.__name__ for cls in walk_subclasses(base) if _is_offered_class(cls) and name in list_parameter_names(cls)
    )


def _explain_unknown_class(key: str, name: str, config: Mapping[str, Any], roots: Roots) -> str:
    if "." in name:
        return f"{key}: no class `{name}`. Name one that can be imported."
    base = find_class_at(tuple(key.split(".")), {}, roots)
    class_names = sorted({cls.__name__ for cls in walk_subclasses(base) if _is_offered_class(cls)}) if base else []
    listed = f" There are {', '.join(class_names)}; any other by its dotted path." if class_names else ""
    said = f"{key}: no class `{name}`.{_render_suggestion(find_closest_name(name, class_names))}"
    rest = (
        " `rlcredit list` names all; any other by its dotted path." if class_names else " Name it by its dotted path."
    )
    return _append_if_read(said, listed, rest)


def _append_if_read(sentence: str, names: str, instead: str) -> str:
    """Return a sentence with a list of names, or with where they are listed if that is too long to be read."""
    return sentence + (names if names and len(f"error: {sentence}{names}") <= READ else instead)


def _cut_value(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 60 else f"{shown[:40]} .. {shown[-15:]}"


def _name_type(text: str) -> str:
    return TYPES.get(text, text)


def _is_offered_class(cls: type) -> bool:
    """Whether a class is meant for configurations, and not just imported by chance."""
    packages = ("callbacks.", "rlcredit.losses", "rlcredit.tasks.", "torch.optim.")
    module, name = cls.__module__, cls.__name__
    hidden = isabstract(cls) or name.startswith("_") or module == "torch.optim.swa_utils"
    return module.startswith(packages) and not hidden


def _render_alternatives(places: Sequence[Names], prefix: str = "") -> str:
    return " or ".join(f"`{prefix}{_render_path(place)}`" for place in places)


def _render_suggestion(close: str | None) -> str:
    return f" Did you mean `{close}`?" if close else ""
