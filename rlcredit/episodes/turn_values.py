"""What an environment may answer."""

from math import isfinite
from numbers import Real
from typing import Any

from rlcredit.episodes.environment import Turn


class TurnError(ValueError):
    """What an environment answers is no turn; the message says what is wrong and how to mend it."""


def read_turn(value: Any, name: str) -> Turn:
    """Return an answer of ``step``, checked; numbers of numpy become Python's.

    Raises:
        TurnError: it is no turn.

    Example:
        >>> read_turn(Turn("higher", 0), "Guess")
        Turn(text='higher', reward=0.0, done=False)
        >>> read_turn(("higher", 0), "Guess")
        Traceback (most recent call last):
            ...
        rlcredit.episodes.turn_values.TurnError: Guess.step returned ('higher', 0). Return Turn(text, reward, done).

    """
    if not isinstance(value, Turn):
        raise TurnError(f"{name}.step returned {value!r:.80}. Return Turn(text, reward, done).")
    text, reward, is_done = value
    if not isinstance(text, str):
        raise TurnError(f"{name}.step returned the text {text!r:.80}. Return a str, empty where there is none.")
    is_number = isinstance(reward, Real) and not isinstance(reward, bool)
    if reward is not None and not (is_number and isfinite(reward)):
        raise TurnError(f"{name}.step returned the reward {reward!r:.80}. Return a finite number, or None for none.")
    if is_done not in (True, False):
        raise TurnError(f"{name}.step returned done={is_done!r:.80}. Return True or False.")
    return Turn(text, None if reward is None else float(reward), bool(is_done))


def read_opening(value: Any, name: str) -> str | None:
    """Return an answer of ``reset``, checked as :func:`read_turn` checks one of ``step``."""
    if value is not None and not isinstance(value, str):
        raise TurnError(f"{name}.reset returned {value!r:.80}. Return a text, or None for the question as it stands.")
    return value
