"""Cache keys of cards and their runs: if anything behind a key changes, they are made again."""

import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcredit.base.files import file_sha256, is_existing_file
from rlcredit.config.code_fingerprint import (
    find_dotted_paths,
    fingerprint_modules,
    trace_imported_modules,
    walk_config_texts,
)
from rlcredit.credit.catalogue import find_operator_classes
from rlcredit.policy.model_loading import find_embedded_policy

RUN_MODULE = "rlcredit.training.module"
"""Under every run, whatever it names."""

CARD_MODULE = "rlcredit.cards.policy_cards"
"""Under every card."""

OUTPUT_SETTINGS = ("logger", "default_root_dir")
"""Settings of a trainer that say where to, not what."""


def hash_json_content(content: object) -> str:
    """Return a hash of any content that JSON can represent."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def fingerprint_configs(contents: Sequence[Mapping[str, Any]], *, module: str = RUN_MODULE) -> str:
    """Return a hash of configurations, the code that they name, and the weights and data that they read.

    Code is that of the classes and functions they name, all of rlcredit under these and under the whole, and every
    module of one's own that these import; installed packages do not count. Where output goes does not count either.

    Args:
        contents: Contents of the configuration files, parsed.
        module: Module of rlcredit whose code counts in any case, with all that it imports.

    """
    inputs = [_strip_output_settings(content) for content in contents]
    return hash_json_content(
        [
            inputs,
            fingerprint_modules(trace_imported_modules([module, *_list_named_code(inputs)])),
            dict(_hash_named_files(inputs)),
        ]
    )


def _list_named_code(contents: Sequence[Any]) -> Iterator[str]:
    """Yield the dotted paths of all code that configurations name, shipped operators by their modules."""
    modules = {cls.__name__: cls.__module__ for cls in find_operator_classes()}
    yield from find_dotted_paths(contents)
    yield from (modules[word] for _, word in walk_config_texts(contents) if word in modules)


def _hash_named_files(contents: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield all files that configurations name, also those in folders, with their hashes.

    A word is a folder where it stands under ``path``, or has a slash: a data set may be called as a folder by chance.
    """
    for key, word in walk_config_texts(contents):
        place = find_embedded_policy(word) or Path(word).expanduser()
        if is_existing_file(place):
            yield word, _hash_current_file(place)
        elif word and (key == "path" or "/" in word):
            for folder, _, files in os.walk(place, followlinks=True):
                paths = [Path(folder, name) for name in sorted(files) if not name.startswith(".")]
                yield from ((f"{word}/{file.relative_to(place)}", _hash_current_file(file)) for file in paths)


def _hash_current_file(file: Path) -> str:
    status = file.stat()
    return _hash_file_version(file, status.st_size, status.st_mtime_ns)


@functools.cache
def _hash_file_version(file: Path, _size: int, _time: int) -> str:
    return file_sha256(file)


def _strip_output_settings(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without its name and its output settings."""
    trainer = {key: value for key, value in (content.get("trainer") or {}).items() if key not in OUTPUT_SETTINGS}
    return {key: value for key, value in content.items() if key != "condition"} | {"trainer": trainer}
