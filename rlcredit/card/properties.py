"""What a stack is: what it declares, and what holds of it whatever the batch; checked on a part of the batch."""

import copy
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.testing import assert_close

from callbacks.base import CreditOperator
from callbacks.lints import bounds
from rlcredit.card.batch import Batch
from rlcredit.rollout import NEUTRAL, PER_TOKEN, Rollout

PROMPTS = 4
"""Prompts on which it is checked."""

WIDER = 3
"""Columns of padding that are added."""

CANDIDATES = (0.0, 1.0, math.inf)
"""Values that may make an argument neutral."""


@dataclass(frozen=True)
class Property:
    """Something that holds of a stack, or does not.

    Args:
        name: of it.
        holds: whether it does; None where it could not be checked, or is no matter of yes or no.
        sentence: in plain words.

    """

    name: str
    holds: bool | None
    sentence: str

    def plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


Stack = Sequence[CreditOperator]


def properties(batch: Batch) -> Iterator[Property]:
    """Yield what is declared, and what is checked."""
    stack, group = batch.stack, batch.rollout.group_size
    limit = bounds(stack, group)[-1]
    for operator in stack:
        reads, writes = (", ".join(sorted(names)) or "nothing" for names in (operator.reads, operator.writes))
        yield Property(type(operator).__name__, None, f"reads {reads}; writes {writes}")
    known = f"at most {limit:.4g} in size for rewards in [0, 1]" if math.isfinite(limit) else "no bound is declared"
    yield Property("bound", True if math.isfinite(limit) else None, known)
    part = batch.rollout.rows(torch.arange(min(PROMPTS * group, len(batch.rollout.mask))))
    for name, check, yes, no in CHECKS:
        yield _tried(name, lambda check=check, said=(no, yes): (holds := check(stack, part), said[holds]))
    yield _tried("rewards", lambda: (None, _scaled(stack, part)))
    yield _tried("neutral value", lambda: _neutral(stack, part))


def _tried(name: str, check: Callable[[], tuple[bool | None, str]]) -> Property:
    """Return what a check says; an operator of anybody's may raise anything."""
    try:
        return Property(name, *check())
    except Exception as error:  # noqa: BLE001
        return Property(name, None, f"could not be checked: {type(error).__name__}: {error}")


def ledger(stack: Stack, rollout: Rollout, rewards: Tensor | None = None) -> Tensor:
    """Return the advantages that copies of some operators leave, zero outside the mask, shape ``(B, T)``.

    Args:
        stack: left as it is.
        rollout: of which a neutral ledger is opened.
        rewards: in place of the verdicts, shape ``(B,)``.

    """
    fresh = rollout.reopened()
    if rewards is not None:
        fresh.rewards = rewards
        fresh.advantages = NEUTRAL["advantages"](fresh)  # pyright: ignore[reportAttributeAccessIssue]
    for operator in copy.deepcopy(list(stack)):
        operator.checked(fresh)
    return fresh.advantages.where(fresh.mask, 0)


def _same(one: Tensor, two: Tensor) -> bool:
    try:
        assert_close(one, two)
    except AssertionError:
        return False
    return True


def _repeatable(stack: Stack, rollout: Rollout) -> bool:
    return torch.equal(ledger(stack, rollout), ledger(stack, rollout))


def _unordered(stack: Stack, rollout: Rollout) -> bool:
    size = rollout.group_size
    groups = torch.arange(len(rollout.mask)).view(-1, size)
    order = groups.flip(0).roll(1, dims=1).flatten()
    return _same(ledger(stack, rollout.rows(order)), ledger(stack, rollout)[order])


def _unpadded(stack: Stack, rollout: Rollout) -> bool:
    wide = copy.copy(rollout)
    for name in (*PER_TOKEN, "mask", *NEUTRAL):
        value = getattr(rollout, name)
        if isinstance(value, Tensor) and value.shape == rollout.mask.shape:
            setattr(wide, name, pad(value, (0, WIDER)))
    return _same(ledger(stack, wide)[:, :-WIDER], ledger(stack, rollout))


def _apart(stack: Stack, rollout: Rollout) -> bool:
    """Whether each prompt gets the credit that it would get alone."""
    parts = torch.arange(len(rollout.mask)).split(rollout.group_size)
    alone = torch.cat([ledger(stack, rollout.rows(rows)) for rows in parts])
    return _same(alone, ledger(stack, rollout))


def _scaled(stack: Stack, rollout: Rollout) -> str:
    """Say what becomes of credit when all rewards are doubled, and when they are raised by one."""
    plain = ledger(stack, rollout, rollout.correct)
    doubled, raised = (ledger(stack, rollout, rewards) for rewards in (2 * rollout.correct, rollout.correct + 1))
    size = "doubles" if _same(doubled, 2 * plain) else "stays" if _same(doubled, plain) else "changes in another way"
    shift = "stays" if _same(raised, plain) else "changes"
    return f"where all rewards double, credit {size}; where all are higher by one, it {shift}"


def _neutral(stack: Stack, rollout: Rollout) -> tuple[bool | None, str]:
    """Find arguments of the last operator that make it do nothing."""
    place = max(number for number, operator in enumerate(stack) if "advantages" in operator.writes)
    operator, without = stack[place], ledger(stack[:place], rollout)
    label, found = type(operator).__name__, list[str]()
    if torch.equal(ledger(stack[: place + 1], rollout), without):
        return None, f"{label} does nothing here as it is"
    numbers = {
        name: value
        for name, value in operator.arguments.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    for name, value in numbers.items():
        for candidate in (kind for kind in CANDIDATES if math.isfinite(kind) or isinstance(value, float)):
            if _idle(stack, place, {name: type(value)(candidate)}, rollout, without):
                found.append(f"{name} = {candidate:g}")
    if not found:
        return False if numbers else None, f"{label} has none among 0, 1 and infinity"
    return True, f"{label} does nothing with {', or '.join(found)}"


def _idle(stack: Stack, place: int, argument: dict[str, float], rollout: Rollout, without: Tensor) -> bool:
    """Whether an operator with another argument leaves the ledger as it found it."""
    operator = stack[place]
    names = inspect.signature(type(operator)).parameters
    try:
        other = type(operator)(**{**{n: v for n, v in operator.arguments.items() if n in names}, **argument})
        other.label, other.run_seed = operator.label, operator.run_seed
        return torch.equal(ledger([*stack[:place], other], rollout), without)
    except Exception:  # noqa: BLE001  (a value that it refuses, or fails with, is not neutral)
        return False


Check = Callable[[Stack, Rollout], bool]

CHECKS: tuple[tuple[str, Check, str, str], ...] = (
    ("repeatable", _repeatable, "the same batch gets the same credit", "the same batch gets other credit each time"),
    (
        "order",
        _unordered,
        "the order of prompts and of completions does not matter",
        "credit depends on the order of prompts or completions, as it does where noise is drawn by place",
    ),
    ("padding", _unpadded, "padding does not matter", "credit depends on how far completions are padded"),
    (
        "splitting",
        _apart,
        "every prompt gets the credit that it would get alone",
        "credit of a prompt depends on the other prompts of the batch",
    ),
)
"""What is checked, how, and what is said of it."""
