"""The reader of a configuration: files and flags become one mapping, and every value keeps the place it was written at.

Later sources win: a value replaces, a mapping of settings is merged, ``key+`` appends to a list. A class that replaces
another keeps the arguments that both have.
"""

import contextlib
import functools
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rlcredit.base.files import refuse_special_files
from rlcredit.base.messages import find_closest_name, suggest_name
from rlcredit.config.arguments import find_file_option
from rlcredit.config.call_form import CallFormError
from rlcredit.config.class_paths import (
    find_declaring_class,
    find_expected_classes,
    list_parameter_names,
    load_named_class,
)
from rlcredit.config.config_expansion import expand_call_forms, find_inner_hints
from rlcredit.config.passwords import refuse_passwords
from rlcredit.config.paths import find_config_file, find_configs_folder
from rlcredit.config.strict_yaml import (
    NotYAMLError,
    StrictYAMLLoader,
    UnreadableError,
    parse_yaml,
    read_text_file,
    shorten_name,
)

Roots = Mapping[str, Any]
"""The type behind each top-level key of a configuration."""

KeyPath = tuple[str | int, ...]
"""The keys of mappings and the indices of lists that lead to a value."""

ENTRY_KEYS = ("class_path", "init_args", "dict_kwargs")
"""The keys of a class with its arguments."""

CONFIG_FLAGS = ("-c", "--config")

SOURCE_MARK = "# From "
"""Begin of the first line of a file that was written from another place, which messages then name in its stead."""

SWITCH_OPTIONS = {"replace": ("fit",), "show_prompt": ("explain",), "print_config": ("fit", "validate", "explain")}
"""Options that take no value, and the commands that have them."""

_NUMBER = re.compile(r"[-+]?\d[\d_:.]*")
"""What YAML may read as a number, be it in base sixty."""

_KEY = re.compile(r"([a-z_]\w*(?:\.\w+|\[\d+\])*): ")
"""How a message names a key."""

_EXPECTATION = re.compile(r"(\w+) expects (\w+) ")
"""How a message names a class and its argument."""

_FLOAT = re.compile(
    r"[-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9_]+([eE][-+][0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


class _ConfigLoader(StrictYAMLLoader):
    """Loader that reads numbers and dates as jsonargparse does: ``1e3`` is a number, a date is a text."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        letter: [(tag, pattern) for tag, pattern in pairs if tag.rpartition(":")[2] not in ("float", "timestamp")]
        for letter, pairs in StrictYAMLLoader.yaml_implicit_resolvers.items()
    }


_ConfigLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(f"^({_FLOAT.pattern})$"), list("-+0123456789.")
)


@dataclass
class Configuration:
    """The configuration of a command line.

    Attributes:
        command: Name of the command; empty if the first word is an option.
        values: Values by key, of all files and flags.
        origins: Places where values were written, by their paths without ``init_args``: ``configs/tiny.yaml:12`` or
            ``--trainer.max_steps``.
        switches: Options without a value, by their names.
        lost_flags: Flags whose value a later file replaces, each with the place in the file.

    """

    command: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[KeyPath, str] = field(default_factory=dict)
    switches: list[str] = field(default_factory=list)
    lost_flags: dict[str, str] = field(default_factory=dict)

    def find_origin(self, path: KeyPath) -> str:
        """Return the place where the value at a path, or the last part of it, was written; empty if it is a default.

        Example:
            >>> Configuration(origins={("trainer",): "a.yaml:1"}).find_origin(("trainer", "init_args", "max_steps"))
            'a.yaml:1'

        """
        path = drop_entry_keys(path)
        inner_origins = [origin for place, origin in self.origins.items() if place[: len(path)] == path]
        if inner_origins and (
            path not in self.origins or _find_file(inner_origins[-1]) != _find_file(self.origins[path])
        ):
            return inner_origins[-1]
        prefixes = (path[:length] for length in range(len(path), 0, -1))
        return next((self.origins[prefix] for prefix in prefixes if prefix in self.origins), "")

    def locate(self, sentence: str) -> str:
        """Return a sentence behind the file and line of the key or class that it begins with; a flag names itself.

        Example:
            >>> Configuration(origins={("threads",): "mine.yaml:3"}).locate("threads: expected a number, got x.")
            'mine.yaml:3: threads: expected a number, got x.'

        """
        if match := _KEY.match(sentence):
            parts = (int(part) if part.isdigit() else part for part in re.findall(r"\w+", match[1]))
            origin = self.find_origin(tuple(parts))
        else:
            origin = self._find_class_origin(sentence)
            if origin.startswith("--trainer.callbacks."):  # one argument, where the list may stand in a file
                return f"{origin}: {sentence}"
        is_flag = origin.startswith("--") and origin != "--config"
        return sentence if not origin or is_flag else f"{origin}: {sentence}"

    def _find_class_origin(self, sentence: str) -> str:
        """Return the place of the class, or of its argument, that a sentence begins with; empty if it is not one."""
        name, argument = match.groups() if (match := _EXPECTATION.match(sentence)) else (sentence.partition(" ")[0], "")
        paths = [
            drop_entry_keys(path[:-1] if path[-1] == "class_path" else path)
            for path, value in walk_key_paths(self.values)
            if isinstance(value, str) and name and value.rpartition(".")[2] == name
        ]
        places = {self.origins.get((*path, argument)) or self.find_origin((*path, "class_path")) for path in paths}
        return places.pop() if len(places) == 1 else ""


def _find_file(origin: str) -> str:
    return origin.rpartition(":")[0] or origin


def drop_entry_keys(path: KeyPath) -> KeyPath:
    """Return a path without the keys between a class and its arguments."""
    return tuple(part for part in path if part not in ("init_args", "dict_kwargs"))


def read_configuration(words: Sequence[str], roots: Roots) -> Configuration:
    """Return the configuration of a command line.

    Args:
        words: Command and its arguments, in the words of a configuration.
        roots: Type behind each top-level key; empty while they are not imported, and call forms stay as they are.

    Raises:
        ValueError: a file or flag cannot be read, with the place and the repair.

    """
    has_command = bool(words) and not words[0].startswith("-")
    configuration = Configuration(words[0] if has_command else "")
    merger = _Merger(configuration, roots)
    for flag, value in pair_flags_with_values(words[has_command:]):
        refuse_passwords(value, flag)
        refuse_special_files(value, flag)
        merger.add_flag(flag, value)
    refuse_passwords(configuration.values)
    refuse_special_files(configuration.values)
    return configuration


def pair_flags_with_values(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the flags of a command line with their values; the value of a switch is empty.

    Raises:
        ValueError: a value is missing, or belongs to no flag.

    Example:
        >>> list(pair_flags_with_values(["--threads=2", "--seed_everything", "1", "--replace"]))
        [('--threads', '2'), ('--seed_everything', '1'), ('--replace', '')]

    """
    iterator = iter(words)
    for word in iterator:
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--")
        if not word.startswith("-"):
            text, option = shorten_name(word), find_file_option(word)
            rule = "Options begin with --, and a text with blanks needs quotes."
            raise ValueError(f"{text}: no such argument. {f'Say `{option} {text}`.' if option else rule}")
        if name in SWITCH_OPTIONS and value:
            raise ValueError(f"{flag}: takes no value. Say `{flag}` alone.")
        if not equals and name not in SWITCH_OPTIONS:
            value = next(iterator, "--")
            if value.startswith("--"):
                close = find_closest_name(name, SWITCH_OPTIONS, 0.8)
                problem = f"no such option. Did you mean `--{close}`?" if close else "its value is missing."
                raise ValueError(f"{flag}: {problem}" + ("" if close else f" Say it, as `{flag} VALUE`."))
        yield flag, value


class _Merger:
    """Merges sources into a configuration, one after the other.

    Args:
        configuration: Configuration to merge them into.
        roots: Type behind each top-level key.

    """

    def __init__(self, configuration: Configuration, roots: Roots) -> None:
        self.configuration = configuration
        self.roots = roots

    def add_flag(self, flag: str, text: str) -> None:
        """Merge the value of a flag, or the file that it names."""
        name = flag.removeprefix("--")
        if flag in CONFIG_FLAGS:
            self.add_source(text)
        elif name in SWITCH_OPTIONS:
            if self.configuration.command not in SWITCH_OPTIONS[name]:
                raise ValueError(f"{flag}: an option of {' and '.join(SWITCH_OPTIONS[name])} alone. Leave it out.")
            self.configuration.switches.append(name)
        else:
            self.set_path(name.split("."), _parse_flag_value(flag, text), {(): flag}, is_text=True)

    def add_source(self, source: str) -> None:
        """Merge a file, or a text in its place."""
        content, lines, folder = _read_source(source)
        try:
            content = expand_call_forms(content, self.roots, folder=folder)
        except CallFormError as error:
            raise ValueError(Configuration(origins=lines).locate(str(error))) from None
        if isinstance(inner := content.pop("config", None), str) and self.roots:
            self.add_source(find_config_file(inner))
        for key, value in content.items():
            own_lines = {path[1:]: line for path, line in lines.items() if path[0] == key}
            self.set_path(str(key).split("."), value, own_lines)

    def set_path(self, path: Sequence[str], value: Any, lines: Mapping[KeyPath, str], *, is_text: bool = False) -> None:
        """Merge a value at a dotted path; on its way a class means its arguments.

        A list means its entry of the class that comes next in the path, as in ``trainer.callbacks.GTPO.beta``; its last
        one if what comes next is no class.
        """
        node, hint, place = self.configuration.values, self.roots, ()
        parts = list(path)
        while len(parts) > 1:
            part = parts.pop(0)
            names_entry = _holds_list(node, part) and _names_entry(parts[0], node[part])
            if names_entry and len(parts) == 1:
                key = ".".join(map(str, [*place, part, parts[0]]))
                raise ValueError(f"{key}: an operator of the stack. Name its argument too, as --{key}.ARGUMENT VALUE.")
            node, hint, place = self._enter_node(node, part, hint, place, parts.pop(0) if names_entry else "")
        node, hints = _find_arguments(node, hint, path[-1])
        inner = hints.get(path[-1].removesuffix("+"))
        if is_text:
            is_free = bool(self.roots and place) and not isinstance(hint, Mapping) and not find_expected_classes(hint)
            if isinstance(value, str) and is_free:
                value = _parse_free_value(value)
            key = ".".join(map(str, [*place, path[-1]]))
            value = expand_call_forms(value, inner, key, folder=Path())
        self._merge_value(node, path[-1], value, inner, place, lines)

    def _enter_node(
        self, node: dict[str, Any], part: str, hint: Any, place: KeyPath, entry: str
    ) -> tuple[Any, Any, KeyPath]:
        """Return the mapping under a key, created if need be, with its type and its path.

        Args:
            node: Mapping that has the key.
            part: Key.
            hint: Type of the mapping.
            place: Path of the mapping.
            entry: Class of the entry that is meant of a list; the last one if empty.

        """
        node, hints = _find_arguments(node, hint, part)
        owner: Any = node
        key: str | int = part
        place = (*place, part)
        if _holds_list(node, part):
            owner = node[part]
            key = _find_entry(owner, entry, place) if entry else len(owner) - 1
            place = (*place, key)
        child = owner[key] if key in owner or isinstance(key, int) else {}
        bases = find_expected_classes(hints.get(part))
        if isinstance(child, str) and (load_named_class(child, bases) or (bases and child[:1].isupper())):
            child = {"class_path": child}
        owner[key] = child if isinstance(child, dict) else {}
        return owner[key], hints.get(part, {} if part in ENTRY_KEYS else None), place

    def _merge_value(
        self, node: dict[str, Any], key: str, value: Any, hint: Any, place: KeyPath, lines: Mapping[KeyPath, str]
    ) -> None:
        """Merge a value into a mapping; ``lines`` holds the places of what is in it."""
        name = str(key).removesuffix("+")
        path = (*place, name)
        existing = node.get(name)
        if name != key:
            entries = list(existing) if isinstance(existing, list) else [] if existing is None else [existing]
            additions = value if isinstance(value, list) else [value]
            for number, _ in enumerate(additions):
                inner = {line[1:]: text for line, text in lines.items() if not line or line[0] == number}
                self._note_origins((*path, len(entries) + number), inner)
            self.configuration.origins.setdefault(path, lines.get((), ""))
            node[name] = [*entries, *additions]
            return
        bases = find_expected_classes(hint)
        if isinstance(value, str) and isinstance(existing, dict) and load_named_class(value, bases):
            value = {"class_path": value}
        if isinstance(value, dict) and (bases or _is_entry(value) or _is_entry(existing)):
            if not (isinstance(existing, str) and load_named_class(existing, bases)):
                existing = existing if isinstance(existing, dict) else {}
            node[name] = self._merge_settings(existing, value, hint, path, lines)
            return
        place = drop_entry_keys(path)
        for stale in [known_path for known_path in self.configuration.origins if known_path[: len(place)] == place]:
            if value != existing:
                self._note_lost_flag(self.configuration.origins[stale], lines.get((), ""))
            del self.configuration.origins[stale]
        self._note_origins(path, lines)
        node[name] = value

    def _merge_settings(
        self, existing: Any, update: dict[str, Any], hint: Any, path: KeyPath, lines: Mapping[KeyPath, str]
    ) -> dict[str, Any]:
        """Return the settings of a class, with or without its ``class_path``, updated by others."""
        existing = {"class_path": existing} if isinstance(existing, str) else existing
        bases = find_expected_classes(hint)
        old_path, new_path = existing.get("class_path"), update.get("class_path", existing.get("class_path"))
        arguments = dict(read_arguments(existing))
        extras = _read_mapping(existing.get("dict_kwargs")) if _is_entry(existing) else {}
        if old_path != new_path:
            old, new = (load_named_class(class_path, bases) for class_path in (old_path, new_path))
            if old is not new or new is None:
                origin = lines.get(("class_path",), lines.get((), ""))
                if old_path:
                    self._note_lost_flag(self.configuration.origins.get(drop_entry_keys(path), ""), origin)
                arguments = _keep_common_arguments(arguments, old or next(iter(bases), None), new, path)
                extras = {}
        settings = {"class_path": new_path} if new_path is not None else {}
        hints = find_inner_hints({**settings}, hint)
        self._note_origins(path, {line: text for line, text in lines.items() if line in ((), ("class_path",))})
        for key, value in read_arguments(update).items():
            inner = {line[1:]: text for line, text in lines.items() if line and line[0] == key}
            self._merge_value(arguments, key, value, hints.get(str(key).removesuffix("+")), path, inner)
        if not (_is_entry(existing) or _is_entry(update)):
            return arguments
        extras |= _read_mapping(update.get("dict_kwargs"))
        odd_values = {key: value for key, value in update.items() if not _is_entry_part(key, value)}
        inner = {"init_args": arguments} if arguments or not settings else {}
        return {**settings, **inner, **_name_extras(extras), **(odd_values if _is_entry(update) else {})}

    def _note_lost_flag(self, flag: str, origin: str) -> None:
        """Note a flag whose value a later file replaces.

        Args:
            flag: Place where the value was written, which may be a file.
            origin: Place where it is written again.

        """
        if flag.startswith("--") and flag != "--config" and origin and (origin == "--config" or origin[:2] != "--"):
            self.configuration.lost_flags[flag] = origin

    def _note_origins(self, path: KeyPath, lines: Mapping[KeyPath, str]) -> None:
        for line, text in lines.items():
            place = drop_entry_keys(path + line)
            self.configuration.origins.pop(place, None)  # the last place that was written comes last
            self.configuration.origins[place] = text


def _holds_list(node: dict[str, Any], key: str) -> bool:
    return bool(node.get(key)) and isinstance(node[key], list)


def _names_entry(part: str, entries: Sequence[Any]) -> bool:
    """Whether a part of a path names an entry of a list, though perhaps in small letters."""
    return part[:1].isupper() or part.lower() in {name_entry(entry).lower() for entry in entries}


def _find_entry(entries: Sequence[Any], name: str, place: KeyPath) -> int:
    """Return the index of the only entry of a class in the list at a place.

    Raises:
        ValueError: there is none, or there are several.

    """
    key, names = ".".join(map(str, place)), [name_entry(entry) for entry in entries]
    if names.count(name) == 1:
        return names.index(name)
    if name in names:
        raise ValueError(f"{key}: {names.count(name)} entries are `{name}`. Change the one you mean in a file.")
    advice = suggest_name(name, names, 0.8)  # GTPO is no slip for GRPO
    addition = f" It has {', '.join(dict.fromkeys(names))}. To add one, say --{key}+='{name}(...)'."
    raise ValueError(f"{key}: no entry is `{name}`.{advice or addition}")


def name_entry(entry: Any) -> str:
    """Return the name of the class of an entry, in whichever form it is written.

    Example:
        >>> name_entry({"class_path": "callbacks.tokens.gtpo.GTPO"}), name_entry("GTPO(beta=0.2)"), name_entry("GTPO")
        ('GTPO', 'GTPO', 'GTPO')

    """
    text = entry.get("class_path", "") if isinstance(entry, dict) else str(entry)
    return str(text).partition("(")[0].rpartition(".")[2]


def _read_mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _is_entry_part(key: str, value: Any) -> bool:
    """Whether a key of an entry is one that every entry may have, with a value of its kind."""
    return key == "class_path" or (key in ENTRY_KEYS and (value is None or isinstance(value, dict)))


def _name_extras(extras: dict[str, Any]) -> dict[str, Any]:
    return {"dict_kwargs": extras} if extras else {}


def _is_entry(value: Any) -> bool:
    return isinstance(value, dict) and ("class_path" in value or "init_args" in value)


def read_arguments(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a class, whichever way they are written."""
    if not _is_entry(settings):
        return settings
    return _read_mapping(settings.get("init_args"))


def _find_arguments(node: dict[str, Any], hint: Any, part: str) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return the mapping that a key belongs into, which ``init_args`` may be, and the types of what is in it."""
    hints = find_inner_hints(node, hint)
    if not _is_entry(node) or part in ENTRY_KEYS:
        return node, hints
    if not isinstance(node.get("init_args"), dict):
        node["init_args"] = {}
    return node["init_args"], hints


def _keep_common_arguments(arguments: dict[str, Any], old: Any, new: Any, path: KeyPath) -> dict[str, Any]:
    """Return the arguments of a class that the class in its place takes too; of a task, those that mean the same."""
    if new is None:
        return {}
    common = {name: value for name, value in arguments.items() if name in list_parameter_names(new)}
    if path != ("data",) or old is None:
        return common
    return {
        name: value
        for name, value in common.items()
        if find_declaring_class(old, name) is find_declaring_class(new, name)
    }


def _parse_flag_value(flag: str, text: str) -> Any:
    """Return the list or mapping that a flag gives; every other value stays a text."""
    if text.startswith(("[", "{")) or _NUMBER.fullmatch(text):
        with contextlib.suppress(NotYAMLError):  # a plain text may begin like YAML
            value = parse_yaml(text, flag, _ConfigLoader)
            return value if text[0] in "[{" else text
    return text


def _parse_free_value(text: str) -> Any:
    with contextlib.suppress(UnreadableError):
        return parse_yaml(text, loader=_ConfigLoader)
    return text


def _is_file(source: str) -> bool:
    return not source.lstrip().startswith("{") and "\n" not in source


def _read_source(source: str) -> tuple[dict[str, Any], dict[KeyPath, str], Path]:
    """Return the content of a file, or of the text given in its place, the lines of what is in it, and its folder."""
    if not source.strip():
        raise ValueError("--config: its value is missing. Name a file, as `--config configs/tiny.yaml`.")
    is_file = _is_file(source)
    text, name = (read_text_file(Path(source)), source) if is_file else (source, "--config")
    content = parse_yaml(text, name, _ConfigLoader)
    if content is None:
        raise ValueError(f"{shorten_name(source)}: is empty. Write what it is to change, such as `threads: 2`.")
    if not isinstance(content, dict):
        kind = {list: "a list", str: "a text"}.get(type(content), repr(content))
        raise ValueError(
            f"{shorten_name(source)}: a configuration is a mapping of keys, got {kind}. Write `key: value` lines."
        )
    model = content.get("model")
    if isinstance(model, dict) and model.get("micro_batch_size", 0) is None:
        del model["micro_batch_size"]  # runs have saved it, at its default, before `micro_batch_tokens` took its place
    for path, value in walk_key_paths(content):
        place = f"{shorten_name(source)}: {'.'.join(map(str, path))}"
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"{place}: contains a null byte, which no name or path may. Remove it.")
        if not isinstance(path[-1], str) and isinstance(_read_value(content, path[:-1]), dict):
            raise ValueError(f"{place}: keys must be texts, got {path[-1]!r}. Put quotes around it.")
    source_place = text.partition("\n")[0].removeprefix(SOURCE_MARK) if text.startswith(SOURCE_MARK) else ""
    lines = {
        path: source_place or (f"{_show_file(name)}:{line}" if is_file else name)
        for path, line in _locate_nodes(yaml.compose(text, _ConfigLoader))
    }
    return content, lines, Path(source).parent if is_file else Path()


def locate_in_file(sentence: str, text: str, name: str) -> str:
    """Return a sentence behind a file, and the line in its text of the key that the sentence begins with.

    Example:
        >>> [locate_in_file(sentence, "{seeds: []}", "a.yaml") for sentence in ("seeds: empty.", "No.")]
        ['a.yaml:1: seeds: empty.', 'a.yaml: No.']

    """
    file = _show_file(name)
    lines = {path: f"{file}:{line}" for path, line in _locate_nodes(yaml.compose(text, _ConfigLoader))}
    placed_sentence = Configuration(origins=lines).locate(sentence)
    return f"{file}: {sentence}" if placed_sentence == sentence else placed_sentence


def _show_file(name: str) -> str:
    """Return the name of a file as a command line gives it, also of one that comes with rlcredit."""
    home = find_configs_folder()
    path = Path(name)
    return shorten_name(Path(home.name) / path.relative_to(home) if path.is_relative_to(home) else path)


def _read_value(node: Any, path: KeyPath) -> Any:
    return functools.reduce(operator.getitem, path, node)


def _locate_nodes(node: yaml.Node | None, path: KeyPath = ()) -> Iterator[tuple[KeyPath, int]]:
    """Yield the path and the line of every value of a YAML text."""
    if isinstance(node, yaml.MappingNode):
        children = [(key.value, key, value) for key, value in node.value]
    else:
        items = node.value if isinstance(node, yaml.SequenceNode) else []
        children = [(number, item, item) for number, item in enumerate(items)]
    for name, mark, child in children:
        inner = path if name in ("init_args", "dict_kwargs") else (*path, name)
        if inner != path:
            yield inner, mark.start_mark.line + 1
        yield from _locate_nodes(child, inner)


def walk_key_paths(node: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the path of every value in a configuration, and the value."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key), value
        yield from walk_key_paths(value, (*path, key))
