"""What a card and its runs depend on: if any of it changes, they are made again."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlcredit.files import file_sha256, is_file
from rlcredit.inputs.code import meanings, modules, named, words
from rlcredit.loading import embedded

MACHINERY = "rlcredit.module"
"""Under every condition, whatever it names."""

OUTPUT = ("logger", "default_root_dir")
"""Settings of a trainer that say where to, not what."""


def digest(content: object) -> str:
    """Identify anything that JSON can write."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def depends(contents: Sequence[Any]) -> str:
    """Identify configurations by what they say, by the code that they name, and by the weights and data.

    Code is that of the classes and functions they name, of rlcredit under these, and of every module of one's own that
    these import; installed packages do not count.

    Args:
        contents: of the files of a configuration, parsed.

    """
    return digest([contents, meanings(modules(_code(contents))), dict(_files(contents))])


def _code(contents: Sequence[Any]) -> Iterator[str]:
    """Yield the dotted paths of all code that is named, shipped operators by their modules."""
    from callbacks import every_operator  # noqa: PLC0415  (imports every operator)

    shipped = {cls.__name__: cls.__module__ for cls in every_operator()}
    yield MACHINERY
    yield from named(contents)
    yield from (shipped[word] for _, word in words(contents) if word in shipped)


def _files(contents: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield the files that are named, and those in folders that stand under ``path``, with their hashes."""
    for key, word in words([_input(content) for content in contents]):
        place = embedded(word) or Path(word)
        if is_file(place):
            yield word, file_sha256(place)
        elif key == "path" and word:
            inside = (file for file in sorted(place.rglob("*")) if file.is_file())
            yield from ((f"{word}/{file.relative_to(place)}", file_sha256(file)) for file in inside)


def _input(content: Any) -> Any:
    """Return a configuration without what it writes to."""
    trainer = {key: value for key, value in (content.get("trainer") or {}).items() if key not in OUTPUT}
    return {**content, "trainer": trainer}
