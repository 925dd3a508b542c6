"""What a stack is: what it declares, and what holds of it whatever the batch; checked on the batch at hand."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch

from callbacks.lints import bound_advantages
from rlcredit.card.batch import CardBatch
from rlcredit.card.metamorphic import CHECKS, Found, check_repeatability
from rlcredit.card.neutral import find_neutral_arguments

PROMPTS = 4
"""Prompts on which a stack is checked that has more decoded; others are checked on all."""


@dataclass(frozen=True)
class StackProperty:
    """Something that holds of a stack, or does not.

    Args:
        name: of it.
        holds: whether it does; None where it could not be checked, or is no matter of yes or no.
        sentence: in plain words.

    """

    name: str
    holds: bool | None
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def check_stack_properties(batch: CardBatch) -> Iterator[StackProperty]:
    """Yield what is declared, and what is checked."""
    stack, group = batch.stack, batch.rollout.group_size
    limit = bound_advantages(stack, group)[-1]
    for operator in stack:
        reads, writes = (", ".join(sorted(names)) or "nothing" for names in (operator.reads, operator.writes))
        yield StackProperty(type(operator).__name__, None, f"reads {reads}; writes {writes}")
    known = f"at most {limit:.4g} in size for rewards in [0, 1]" if math.isfinite(limit) else "no bound is declared"
    yield StackProperty("bound", True if math.isfinite(limit) else None, known)
    part = batch.rollout
    if any(operator.costly for operator in stack):
        part = part.select_rows(torch.arange(min(PROMPTS * group, len(part.mask))))
    yield StackProperty("checked on", None, f"{len(part.mask) // group} prompts x {group} completions")
    again = _run_property_check("repeatable", lambda: check_repeatability(stack, part))
    yield again
    for name, check in CHECKS.items():
        if again.holds is False:
            yield StackProperty(name, None, "could not be checked: credit is drawn anew each time")
        else:
            yield _run_property_check(name, lambda check=check: check(stack, part))
    yield _run_property_check("neutral value", lambda: find_neutral_arguments(stack, part))


def _run_property_check(name: str, check: Callable[[], Found]) -> StackProperty:
    """Return what a check says; an operator of anybody's may raise anything."""
    try:
        return StackProperty(name, *check())
    except Exception as error:  # noqa: BLE001
        return StackProperty(name, None, f"could not be checked: {type(error).__name__}: {error}")
