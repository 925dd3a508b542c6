"""Values that a configuration may hold: largest numbers, names of folders, bits to compute in."""

import re
from typing import Any

SEED_COUNT = 2**32
"""How many seeds there are; numpy takes no larger one."""
MAX_THREADS = 1024
"""More than most machines have cores; far more, and a system cannot start them."""


_MAX_NAME_LENGTH = 100
"""Characters; file systems end at 255 bytes, and names get company in a path."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def validate_folder_name(key: str, value: Any) -> str:
    """Return a name that stays inside the folder it is put in, however it was written.

    Args:
        key: Name of the setting, for the message.
        value: Value that was given.

    Raises:
        ValueError: it is no such name.

    Example:
        >>> validate_folder_name("condition", "grpo_sepa-2.1")
        'grpo_sepa-2.1'
        >>> validate_folder_name("condition", "../elsewhere")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: condition: '../elsewhere' cannot name a folder. Write ...

    """
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        quotation = repr(value) if len(repr(value)) <= _MAX_NAME_LENGTH else f"{repr(value)[:_MAX_NAME_LENGTH]} .."
        raise ValueError(
            f"{key}: {quotation} cannot name a folder. Write letters, digits, `.`, `_` and `-`, a letter or digit "
            "first."
        )
    if len(value) > _MAX_NAME_LENGTH:
        raise ValueError(
            f"{key}: {value[:20]} .. names a folder: at most {_MAX_NAME_LENGTH} characters, got {len(value)}."
        )
    return value


TRAINING_PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")
"""Values of ``trainer.precision`` under which the weights that learn stay float32."""

_OTHER_NAMES = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}
"""What Lightning takes them to mean."""


def refuse_unfit_precision(value: Any) -> None:
    """Refuse a precision that does not exist or that would round the adapter.

    Args:
        value: Value of ``trainer.precision``; None is Lightning's default.

    Raises:
        ValueError: with those that remain.

    """
    if value is None or _OTHER_NAMES.get(str(value), str(value)) in TRAINING_PRECISIONS:
        return
    alternatives = f"{', '.join(TRAINING_PRECISIONS[:-1])} or {TRAINING_PRECISIONS[-1]}"
    if str(value) in ("bf16-true", "16-true", "64", "64-true"):
        raise ValueError(
            f"trainer.precision: {value} would hold the adapter in as many bits; it learns in float32 and is saved so. "
            f"Choose {alternatives}; model.policy.dtype bfloat16 halves the frozen weights."
        )
    raise ValueError(f"trainer.precision: expected {alternatives}, got {str(value)[:80]!r}.")
