"""Parameters that take one of a few words."""

from collections.abc import Sequence
from typing import TypeVar

Word = TypeVar("Word", bound=str)


def require_choice(owner: str, name: str, value: Word, choices: Sequence[str]) -> Word:
    """Return ``value`` if it is among ``choices``; a misspelt word must not select another formula.

    Raises:
        ValueError: ``value`` is not one of them; the message lists the choices.

    """
    if value not in choices:
        raise ValueError(f"{owner} expects {name} to be one of {', '.join(choices)}, got {value!r}.")
    return value
