"""Names that become folders."""

import re
from typing import Any

LONGEST = 100
"""Characters; file systems end at 255 bytes, and names get company in a path."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def validate_folder_name(key: str, value: Any) -> str:
    """Return a name that stays inside the folder it is put in, however it was written.

    Args:
        key: where it was given.
        value: what was given.

    Raises:
        ValueError: it is no such name.

    Example:
        >>> validate_folder_name("condition", "grpo_sepa-2.1")
        'grpo_sepa-2.1'
        >>> validate_folder_name("condition", "../elsewhere")
        Traceback (most recent call last):
        ValueError: condition: '../elsewhere' names a folder: letters, digits, `.`, `_` and `-`, no `.` in front.

    """
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        shown = repr(value) if len(repr(value)) <= LONGEST else f"{repr(value)[:LONGEST]} .."
        raise ValueError(f"{key}: {shown} names a folder: letters, digits, `.`, `_` and `-`, no `.` in front.")
    if len(value) > LONGEST:
        raise ValueError(f"{key}: {value[:20]} .. names a folder: at most {LONGEST} characters, got {len(value)}.")
    return value
