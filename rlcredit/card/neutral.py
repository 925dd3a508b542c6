"""Arguments with which an operator does nothing."""

import inspect
import math

import torch
from torch import Tensor

from rlcredit.card.metamorphic import Found, Stack, stack_advantages
from rlcredit.rollout import Rollout

CANDIDATES = (0.0, 1.0, math.inf)
"""Values that may make an argument neutral."""


def find_neutral_arguments(stack: Stack, rollout: Rollout) -> Found:
    """Find arguments of the last operator that make it do nothing."""
    place = max((number for number, operator in enumerate(stack) if "advantages" in operator.writes), default=None)
    if place is None:
        return None, "no operator writes advantages"
    operator, without = stack[place], stack_advantages(stack[:place], rollout)
    label, found = type(operator).__name__, list[str]()
    if torch.equal(stack_advantages(stack[: place + 1], rollout), without):
        return None, f"{label} does nothing here as it is: what stands above it gives the same credit"
    numbers = {
        name: value
        for name, value in operator.arguments.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    for name, value in numbers.items():
        for candidate in (kind for kind in CANDIDATES if math.isfinite(kind) or isinstance(value, float)):
            if _is_idle_with(stack, place, {name: type(value)(candidate)}, rollout, without):
                found.append(f"{name} = {candidate:g}")
    if not found:
        return False if numbers else None, f"{label} has none among 0, 1 and infinity"
    return True, f"{label} does nothing with {', or '.join(found)}"


def _is_idle_with(stack: Stack, place: int, argument: dict[str, float], rollout: Rollout, without: Tensor) -> bool:
    """Whether an operator with another argument leaves the ledger as it found it."""
    operator = stack[place]
    names = inspect.signature(type(operator)).parameters
    try:
        other = type(operator)(**{**{n: v for n, v in operator.arguments.items() if n in names}, **argument})
        other.label, other.run_seed = operator.label, operator.run_seed
        return torch.equal(stack_advantages([*stack[:place], other], rollout), without)
    except Exception:  # noqa: BLE001  (a value that it refuses, or fails with, is not neutral)
        return False
