"""A disk cache for questions that took long to generate."""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from rlcredit.base.files import write_atomically
from rlcredit.tasks.example import Example, QuestionSets

MAX_CACHE_FILE_BYTES = 64 * 2**20
"""Bytes of one file; larger ones are neither written nor read."""

MAX_CACHE_BYTES = 512 * 2**20
"""Bytes of all files; beyond them the oldest go."""

CACHE_FORMAT = 1


def locate_question_cache() -> Path:
    """Return the folder of the cache: in ``$XDG_CACHE_HOME``, or in ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlcredit" / "questions"


def load_cached_questions(key: dict[str, Any]) -> QuestionSets | None:
    """Return training and held-out questions stored under a key; None if there is no complete entry."""
    try:
        path = _build_cache_path(key)
        if path.stat().st_size > MAX_CACHE_FILE_BYTES:
            return None
        content = json.loads(path.read_bytes())
        if content["key"] != _serialise_key(key):
            return None
        train, held_out = ([Example(*_decode_value(row)) for row in content[part]] for part in ("train", "held_out"))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return train, held_out


def cache_questions(key: dict[str, Any], sets: QuestionSets) -> bool:
    """Store questions under a key, completely or not at all; return whether they were stored.

    Metadata that JSON cannot give back as it was, and a folder that takes no file, are left alone.

    Args:
        key: Everything that the questions depend on.
        sets: Training and held-out questions.

    """
    try:
        rows = [[_encode_value(list(example)) for example in part] for part in sets]
        content = json.dumps({"key": _serialise_key(key), "train": rows[0], "held_out": rows[1]}, allow_nan=False)
        if len(content) > MAX_CACHE_FILE_BYTES:
            return False
        locate_question_cache().mkdir(mode=0o700, parents=True, exist_ok=True)
        _evict_oldest_files(len(content))
        write_atomically(_build_cache_path(key), content)
    except (OSError, TypeError, ValueError, RecursionError):
        return False
    return True


def _evict_oldest_files(size: int) -> None:
    files = sorted(locate_question_cache().glob("*.json"), key=lambda path: path.stat().st_mtime)
    total = size + sum(path.stat().st_size for path in files)
    for path in files:
        if total <= MAX_CACHE_BYTES:
            return
        total -= path.stat().st_size
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _serialise_key(key: dict[str, Any]) -> str:
    return json.dumps({**key, "format": CACHE_FORMAT}, sort_keys=True)


def _build_cache_path(key: dict[str, Any]) -> Path:
    return locate_question_cache() / f"{hashlib.sha256(_serialise_key(key).encode()).hexdigest()[:32]}.json"


def _encode_value(value: Any) -> Any:
    """Mark what JSON does not know: tuples, and mappings whose keys are no texts."""
    if type(value) is tuple:
        return {"tuple": [_encode_value(part) for part in value]}
    if type(value) is list:
        return [_encode_value(part) for part in value]
    if type(value) is dict:
        return {"dict": [[_encode_value(name), _encode_value(part)] for name, part in value.items()]}
    if value is None or type(value) in (str, int, float, bool):
        return value
    raise TypeError(f"{type(value).__name__} cannot be restored from JSON")


def _decode_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode_value(part) for part in value]
    if isinstance(value, dict):
        ((kind, parts),) = value.items()
        if kind == "tuple":
            return tuple(_decode_value(part) for part in parts)
        return {_decode_value(name): _decode_value(part) for name, part in parts}
    return value
