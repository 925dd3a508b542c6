"""What a stack is: what it declares, and what holds of it whatever the batch; checked on the batch at hand."""

import copy
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from callbacks.base import CreditOperator
from callbacks.lints import bounds
from rlcredit.card.batch import Batch
from rlcredit.rollout import NEUTRAL, PER_TOKEN, Rollout

PROMPTS = 4
"""Prompts on which a stack is checked that has more decoded; others are checked on all."""

ROUNDING = 1e-5
"""Differences of credit that are none, as a share of the largest credit."""

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
    part = batch.rollout
    if any(operator.costly for operator in stack):
        part = part.rows(torch.arange(min(PROMPTS * group, len(part.mask))))
    yield Property("checked on", None, f"{len(part.mask) // group} prompts x {group} completions")
    repeatable = _tried("repeatable", lambda: _repeatable(stack, part))
    yield repeatable
    for name, check in CHECKS.items():
        if repeatable.holds is False:
            yield Property(name, None, "could not be checked: credit is drawn anew each time")
        else:
            yield _tried(name, lambda check=check: check(stack, part))
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
    return _left(copy.deepcopy(list(stack)), rollout, rewards)


def _left(stack: Stack, rollout: Rollout, rewards: Tensor | None = None) -> Tensor:
    """Return the advantages that these very operators leave."""
    fresh = rollout.reopened()
    if rewards is not None:
        fresh.rewards = rewards
        fresh.advantages = NEUTRAL["advantages"](fresh)  # pyright: ignore[reportAttributeAccessIssue]
    for operator in stack:
        operator.checked(fresh)
    return fresh.advantages.where(fresh.mask, 0)


def _same(one: Tensor, two: Tensor) -> bool:
    return bool((one - two).abs().max() <= ROUNDING * torch.maximum(one.abs(), two.abs()).max())


def _repeatable(stack: Stack, rollout: Rollout) -> tuple[bool, str]:
    if _same(ledger(stack, rollout), ledger(stack, rollout)):
        return True, "the same batch gets the same credit"
    return False, "the same batch gets other credit each time"


def _forgetful(stack: Stack, rollout: Rollout) -> tuple[bool | None, str]:
    """Say what is kept from batch to batch, and whether a checkpoint would hold all of it.

    Between two times that it is given credit, the batch is seen with the opposite verdicts; then all that is declared
    as ``state`` is put back.
    """
    copies = copy.deepcopy(list(stack))
    first = _left(copies, rollout)
    _left(copies, rollout, 1 - rollout.correct)
    for operator, before in zip(copies, stack, strict=True):
        for name in operator.state:
            setattr(operator, name, copy.deepcopy(getattr(before, name)))
    if not _same(first, _left(copies, rollout)):
        return False, "credit depends on batches before, and no `state` says so: a run that goes on would differ"
    if kept := [f"{type(each).__name__} keeps {', '.join(sorted(each.state))}" for each in stack if each.state]:
        return None, f"credit may depend on batches before: {'; '.join(kept)}"
    return True, "credit does not depend on the batches before"


def _unordered(stack: Stack, rollout: Rollout) -> tuple[bool, str]:
    size = rollout.group_size
    groups = torch.arange(len(rollout.mask)).view(-1, size)
    order = groups.flip(0).roll(1, dims=1).flatten()
    if _same(ledger(stack, rollout.rows(order)), ledger(stack, rollout)[order]):
        return True, "the order of prompts and of completions does not matter"
    return False, "credit depends on the order of prompts or completions, as it does where noise is drawn by place"


def _unpadded(stack: Stack, rollout: Rollout) -> tuple[bool, str]:
    wide = copy.copy(rollout)
    for name in (*PER_TOKEN, "mask", *NEUTRAL):
        value = getattr(rollout, name)
        if isinstance(value, Tensor) and value.shape == rollout.mask.shape:
            setattr(wide, name, pad(value, (0, WIDER)))
    if _same(ledger(stack, wide)[:, :-WIDER], ledger(stack, rollout)):
        return True, "padding does not matter"
    return False, "credit depends on how far completions are padded"


def _apart(stack: Stack, rollout: Rollout) -> tuple[bool, str]:
    """Whether each prompt gets the credit that it would get alone."""
    parts = torch.arange(len(rollout.mask)).split(rollout.group_size)
    alone = torch.cat([ledger(stack, rollout.rows(rows)) for rows in parts])
    if _same(alone, ledger(stack, rollout)):
        return True, "every prompt gets the credit that it would get alone"
    return False, "credit of a prompt depends on the other prompts of the batch"


def _scaled(stack: Stack, rollout: Rollout) -> tuple[None, str]:
    """Say what becomes of credit when all rewards are doubled, and when they are raised by one."""
    plain = ledger(stack, rollout, rollout.correct)
    if not plain.any():
        return None, "no credit is given, whatever the rewards"
    doubled, raised = (ledger(stack, rollout, rewards) for rewards in (2 * rollout.correct, rollout.correct + 1))
    size = "doubles" if _same(doubled, 2 * plain) else "stays" if _same(doubled, plain) else "changes in another way"
    shift = "stays" if _same(raised, plain) else "changes"
    return None, f"where all rewards double, credit {size}; where all are higher by one, it {shift}"


def _neutral(stack: Stack, rollout: Rollout) -> tuple[bool | None, str]:
    """Find arguments of the last operator that make it do nothing."""
    place = max((number for number, operator in enumerate(stack) if "advantages" in operator.writes), default=None)
    if place is None:
        return None, "no operator writes advantages"
    operator, without = stack[place], ledger(stack[:place], rollout)
    label, found = type(operator).__name__, list[str]()
    if torch.equal(ledger(stack[: place + 1], rollout), without):
        return None, f"{label} does nothing here as it is: what stands above it gives the same credit"
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


CHECKS: dict[str, Callable[[Stack, Rollout], tuple[bool | None, str]]] = {
    "memory": _forgetful,
    "order": _unordered,
    "padding": _unpadded,
    "splitting": _apart,
    "rewards": _scaled,
}
"""What is checked of a stack that gives the same batch the same credit: whether it holds, and that in words."""
