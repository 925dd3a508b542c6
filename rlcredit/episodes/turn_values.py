"""What an environment may answer."""

from math import isfinite
from typing import Any

from rlcredit.episodes.environment import Turn


class TurnError(ValueError):
    """What an environment answers is no turn; the message says what is wrong and how to mend it."""


def read_turn(value: Any, name: str) -> Turn:
    """Return what an environment answered, checked.

    Raises:
        TurnError: it is no turn.

    """
    if not isinstance(value, Turn):
        raise TurnError(f"{name}.step returned {value!r:.80}. Return Turn(text, reward, done).")
    if not isinstance(value.text, str):
        raise TurnError(f"{name}.step returned the text {value.text!r:.80}. Return a str.")
    if value.reward is not None and not isfinite(value.reward):
        raise TurnError(f"{name}.step returned the reward {value.reward}. Return a finite number, or None.")
    return value
