"""Lints that reject a meaningless stack before weights are loaded, and bounds and notices for the others."""

import inspect
import math
from collections.abc import Iterable, Sequence

from callbacks.contract import Contract, StackError, operators
from rlcredit.rollout import MEANINGFUL


def check_stack(callbacks: Iterable[object]) -> None:
    """Reject a stack that reads what nothing wrote, or writes what nothing will read.

    Args:
        callbacks: as listed in ``trainer.callbacks``; callbacks that are not credit operators are passed over.

    Raises:
        StackError: with the operator, the field and the repair.

    """
    stack = operators(callbacks)
    for place, operator in enumerate(stack):
        for name in sorted(operator.reads):
            _check_read(stack, place, name)
        for name in sorted(operator.writes):
            _check_write(stack, place, name)
        _check_state(stack, place)


def bounds(stack: Sequence[Contract], group_size: int) -> list[float]:
    """Return the largest advantage above each operator and, last, below all; the neutral ledger holds rewards.

    Infinity where none is known, and below an operator that reads shaped rewards, since these may leave [0, 1].
    """
    limits, shaped = [1.0], False
    for operator in stack:
        bound = operator.bound(limits[-1], group_size)
        limits.append(math.inf if shaped and {"rewards", "advantages"} <= operator.reads | operator.writes else bound)
        shaped = shaped or "rewards" in operator.writes
    return limits


def notices(callbacks: Iterable[object], group_size: int) -> list[str]:
    """Return what is known beforehand about operators that do nothing."""
    stack = operators(callbacks)
    above = bounds(stack, group_size)
    messages = [operator.notice(limit, group_size) for operator, limit in zip(stack, above, strict=False)]
    return [message for message in messages if message]


def _check_read(stack: Sequence[Contract], place: int, name: str) -> None:
    """Undefined read: the field still has a neutral value that means nothing."""
    if name in MEANINGFUL or any(name in above.writes for above in stack[:place]):
        return
    reader, below = _name(stack[place]), [_name(late) for late in stack[place + 1 :] if name in late.writes]
    usual = usual_writer(name)
    named = usual.__name__ if usual else f"an operator that writes `{name}`"
    verb, writer = ("Move", below[0]) if below else ("Put", named)
    raise StackError(
        f"{reader} reads `{name}`, which no callback above it writes. "
        f"{verb} {writer} above {reader} in trainer.callbacks."
    )


def _check_write(stack: Sequence[Contract], place: int, name: str) -> None:
    """Dead write: overwritten or forgotten before an operator that assigns credit has read it."""
    writer = stack[place]
    for later in stack[place + 1 :]:
        if name in later.reads and later.writes:
            return
        if name in later.writes:
            repair = (
                f"Move {_name(later)} above {_name(writer)}" if name in writer.reads else "Keep only one of the two"
            )
            raise StackError(
                f"{_name(later)} overwrites the `{name}` of {_name(writer)} before anything uses it. "
                f"{repair} in trainer.callbacks."
            )
    watched = any(name in later.reads for later in stack[place + 1 :])
    if name == "advantages" or watched:
        return
    readers = [_name(above) for above in stack[:place] if name in above.reads and above.writes]
    repair = f"Move {_name(writer)} above {readers[0]}" if readers else f"Remove {_name(writer)} from the list"
    where = "in trainer.callbacks." if readers else "trainer.callbacks."
    raise StackError(f"{_name(writer)} writes `{name}`, which nothing below it reads. {repair} {where}")


def _check_state(stack: Sequence[Contract], place: int) -> None:
    """A checkpoint knows an operator by its class and arguments."""
    operator = stack[place]
    if not operator.state:
        return
    if lost := [name for name in inspect.signature(type(operator)).parameters if name not in operator.arguments]:
        raise StackError(
            f"{_name(operator)} must keep {lost} under the same name: a checkpoint knows it by its arguments."
        )
    twins = [
        above for above in stack[:place] if type(above) is type(operator) and above.arguments == operator.arguments
    ]
    if twins:
        raise StackError(
            f"Two {_name(operator)} with the same arguments would share one state in a checkpoint. "
            "Change an argument of one, or keep only one, in trainer.callbacks."
        )


def _name(operator: Contract) -> str:
    return type(operator).__name__


def usual_writer(name: str) -> type[Contract] | None:
    """Return the operator that usually writes a field, or else the one that needs least; None if none does."""
    from callbacks import load  # noqa: PLC0415  (the package imports this module)

    load(probes=False)
    writers: list[type[Contract]] = []
    queue: list[type[Contract]] = [Contract]
    while queue:
        cls = queue.pop(0)
        queue.extend(cls.__subclasses__())
        if name in cls.writes and name not in cls.reads:
            writers.append(cls)
    writers.sort(key=lambda cls: (not cls.usual, len(cls.reads)))
    return writers[0] if writers else None
