"""Decide whether an answer or its reference is at fault when judging raises."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

AT_FAULT = -math.inf
"""Reward, below all others, of a completion that makes a reward function raise, hang or die; it is then replaced."""


def judge_or_blame(judge: Callable[[], T], judge_reference: Callable[[], Any]) -> T | float | None:
    """Return what ``judge`` returns; if it raises, 0 where the answer is at fault and None where the reference is.

    Whatever reads a completion does so in here, in the trainer as in a worker, so that no completion ends a run.

    Args:
        judge: Function that judges the answer.
        judge_reference: Function that does the same with the reference as the answer.

    Example:
        >>> judge_or_blame(lambda: int("5") == 5, lambda: int("5"))
        True
        >>> judge_or_blame(lambda: int("five") == 5, lambda: int("5"))
        0.0
        >>> judge_or_blame(lambda: int("5") == int("five"), lambda: int("five")) is None
        True

    """
    try:
        return judge()
    except Exception:  # noqa: BLE001  (a completion may make a parser raise anything)
        pass
    try:
        judge_reference()
    except Exception:  # noqa: BLE001  (so may a reference)
        return None
    return 0.0
