"""YAML as a configuration needs it: no key twice, and nothing that grows when it is read."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from yaml.parser import ParserError
from yaml.scanner import ScannerError

from rlcredit.base.files import find_special_kind
from rlcredit.config.paths import find_similar_config

MAX_CONFIG_BYTES = 2**20
"""Of a file; the largest configuration that a run writes has about eight thousand."""
_CONFIG_SUFFIXES = ("", ".yaml", ".yml")
"""How names of configurations end."""
_MAX_DEPTH = 40
_MAX_DIGITS = 60
"""Of a number; a double in full has seventeen."""
_MAX_NODES = 20_000
"""With every alias counted at its full size."""


class UnreadableError(ValueError):
    """A text that is refused as YAML; the message says where and what to do."""


class NotYAMLError(UnreadableError):
    """A text that is not YAML at all."""


class StrictYAMLLoader(yaml.SafeLoader):
    """A loader for which a repeated key is an error, not a value that silently disappears, and which stays small."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Count depth and size of the nodes before objects are constructed."""
        event, self._depth = self.peek_event(), self._depth + 1
        location = f"line {event.start_mark.line + 1}"
        if self._depth > _MAX_DEPTH:
            raise UnreadableError(f"{location}: nested more than {_MAX_DEPTH} deep. Write it flatter.")
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is None:
            return None
        if isinstance(event, yaml.AliasEvent) and id(node) not in self._sizes:
            raise UnreadableError(f"{location}: an alias refers to a node that contains it. Write it out.")
        size = self._sizes.setdefault(id(node), 1 + sum(self._sizes[id(child)] for child in _list_child_nodes(node)))
        if size > _MAX_NODES:
            raise UnreadableError(f"{location}: more than {_MAX_NODES:,} values, aliases written out. Shorten it.")
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse repeated keys."""
        names: set[str] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            name = str(key.value)
            if name in names:
                location = f"line {key.start_mark.line + 1}: {name} occurs twice"
                raise UnreadableError(f"{location}; the second would replace the first. Rename or remove one.")
            names.add(name)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """Refuse numbers that YAML reads as nobody means them, and those of more digits than any number needs."""
        text, location = str(node.value), f"line {node.start_mark.line + 1}"
        digits = sum(map(str.isalnum, text))
        if ":" in text:
            raise UnreadableError(
                f"{location}: YAML reads {shorten_name(text)} as a number in base sixty. Put quotes around it."
            )
        if digits > _MAX_DIGITS:
            raise UnreadableError(
                f"{location}: a number of {digits:,} digits; none needs more than {_MAX_DIGITS}. Shorten it."
            )
        if node.tag.endswith(":float"):
            return self.construct_yaml_float(node)
        if text.lstrip("+-").replace("_", "").isdecimal() and text.lstrip("+-0_") != text.lstrip("+-") and digits > 1:
            raise UnreadableError(
                f"{location}: YAML reads {text} in base eight. Leave out the zero, or put quotes around it."
            )
        return self.construct_yaml_int(node)


for _kind in ("int", "float"):
    StrictYAMLLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", StrictYAMLLoader.construct_number)


def _list_child_nodes(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def parse_yaml(text: str, name: str = "", loader: type[StrictYAMLLoader] = StrictYAMLLoader) -> Any:
    """Return the content of a YAML text.

    Args:
        text: Text of a file or a flag.
        name: Name of the file or flag, for messages.
        loader: Loader that reads it.

    Raises:
        UnreadableError: it is no YAML, repeats a key, or is larger or deeper than the limits.

    Example:
        >>> parse_yaml("{steps: 3, seeds: [0, 1]}")
        {'steps': 3, 'seeds': [0, 1]}

    """
    prefix = f"{shorten_name(name)}: " if name else ""
    if len(text) > MAX_CONFIG_BYTES:
        raise UnreadableError(f"{prefix}more than {MAX_CONFIG_BYTES:,} characters, which no configuration needs.")
    try:
        return yaml.load(text, loader)  # a SafeLoader
    except UnreadableError as error:
        raise UnreadableError(f"{prefix}{error}") from None
    except yaml.MarkedYAMLError as error:
        raise NotYAMLError(f"{prefix}{_explain_yaml_error(error)}") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        raise NotYAMLError(f"{prefix}not YAML: {' '.join(str(error).split())}.") from None


def _explain_yaml_error(error: yaml.MarkedYAMLError) -> str:
    """Name the place at which a text stops to be YAML; unequal indentation is the usual cause."""
    mark = error.problem_mark or error.context_mark
    location = f"line {mark.line + 1}: " if mark else ""
    problem = str(error.problem or error.context)
    advice = next((advice for words, advice in _YAML_REPAIRS.items() if words in problem), "")
    if not advice and isinstance(error, ParserError | ScannerError):
        advice = "Indent the keys of one mapping, and the entries of one list, alike."
    return f"{location}not YAML: {problem}. {advice}".rstrip()


_YAML_REPAIRS = {
    r"'\t'": "Indent with spaces, not with a tab.",
    "mapping values": "Put a colon behind every key, and indent the keys of one mapping alike.",
    "expected ':'": "Write `key: value`, with a colon behind every key.",
    "',' or ']'": "Put a comma between entries, and close every `[`.",
    "',' or '}'": "Put a comma between entries, and close every `{`.",
    "while scanning a quoted": "Close every quotation mark.",
    "unexpected end of stream": "Close every bracket and quotation mark.",
}
"""Repairs, by words of the message of the YAML library."""


def read_text_file(path: Path, limit: int = MAX_CONFIG_BYTES) -> str:
    """Return the text of a file.

    Raises:
        UnreadableError: it is no file, cannot be opened, is longer than ``limit`` bytes, or is not UTF-8.

    """
    if kind := find_special_kind(path):
        raise UnreadableError(
            f"{shorten_name(path)} is {kind}, not a file. Write what it says into a file and name that."
        )
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
        text = content.decode("utf-8")
    except FileNotFoundError:
        repair = "" if path.suffix not in _CONFIG_SUFFIXES else " Name one that there is."
        suggestion = find_similar_config(str(path)) if repair else None
        if suggestion:
            repair = f" Did you mean {suggestion}?"
        raise UnreadableError(f"{shorten_name(path)}: there is no such file.{repair}") from None
    except IsADirectoryError:
        raise UnreadableError(f"{shorten_name(path)}: a folder, and no file. Name a file in it.") from None
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{shorten_name(path)}: not UTF-8 at byte {error.start}. Save it as UTF-8.") from None
    except (OSError, ValueError) as error:  # a null byte in a name is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise UnreadableError(f"{shorten_name(path)}: cannot be read ({reason}).") from None
    if len(content) > limit:
        raise UnreadableError(f"{shorten_name(path)}: longer than {limit:,} bytes.")
    return text


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file.

    Raises:
        UnreadableError: with the file, the line where there is one, and the repair.

    """
    return parse_yaml(read_text_file(path), str(path))


def shorten_name(path: object) -> str:
    """Write a name so that it fits into a message.

    Example:
        >>> shorten_name(Path("configs/tiny.yaml")), len(shorten_name(Path("x" * 300)))
        ('configs/tiny.yaml', 100)

    """
    name = str(path).encode(errors="backslashreplace").decode().replace("\0", "\\0")
    return name if len(name) <= 100 else f"{name[:48]} .. {name[-48:]}"
