"""What an operator declares, and the two lints that reject a meaningless stack before a weight is loaded."""

import inspect
import math
from collections.abc import Iterable, Sequence
from typing import Any

from rlcredit.rollout import FACTS, FIELDS, MEANINGFUL


class StackError(ValueError):
    """A list of operators that cannot mean what it says; the message names the repair."""


class StackWarning(UserWarning):
    """A list of operators one of which does nothing, or not what its name says."""


class Contract:
    """Which fields of the rollout a class reads and which it rebinds, declared in its header.

    ``class GTPO(CreditOperator, reads="signal advantages", writes="advantages")``. ``mask`` and ``group_size`` describe
    shapes and need not be declared. A contract without ``writes`` is a probe's: it only watches. ``state`` names the
    attributes that cannot be recomputed when a run is continued. Of the classes that write a field, the ``usual`` one
    is proposed to those who forgot it.
    """

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    state: tuple[str, ...] = ()
    usual: bool = False

    def __init_subclass__(
        cls,
        reads: str | None = None,
        writes: str | None = None,
        state: str | None = None,
        usual: bool = False,
        **kwargs: Any,
    ) -> None:
        """Record the contract, inherited where it is not given, and refuse one that names no field of the rollout."""
        super().__init_subclass__(**kwargs)
        cls.reads = cls.reads if reads is None else frozenset(reads.split())
        cls.writes = cls.writes if writes is None else frozenset(writes.split())
        cls.state = cls.state if state is None else tuple(state.split())
        cls.usual = usual
        unknown = (cls.reads - FIELDS) | (cls.writes - (FIELDS - FACTS))
        if unknown:
            raise TypeError(
                f"{cls.__name__} declares {sorted(unknown)}; rollouts have {sorted(FIELDS)}, facts read-only."
            )

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the constructor, as far as they are kept under their own names."""
        return {name: vars(self)[name] for name in inspect.signature(type(self)).parameters if name in vars(self)}

    def bound(self, above: float, group_size: int) -> float:
        """Return the largest advantage that can leave when rewards lie in [0, 1]; infinity if none is known.

        Args:
            above: the largest that can enter, by its size like the result.
            group_size: G.

        """
        return math.inf if "advantages" in self.writes else above

    def notice(self, above: float, group_size: int) -> str | None:
        """Say why this operator does nothing at its place, if that can be known beforehand; arguments as in `bound`."""
        return None


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


def operators(callbacks: Iterable[object]) -> list[Contract]:
    """Return the credit operators of a list of callbacks."""
    return [callback for callback in callbacks if isinstance(callback, Contract)]


def bounds(stack: Sequence[Contract], group_size: int) -> list[float]:
    """Return the largest advantage above each operator and, last, below all; the neutral ledger holds rewards."""
    found = [1.0]
    for operator in stack:
        found.append(operator.bound(found[-1], group_size))
    return found


def notices(callbacks: Iterable[object], group_size: int) -> list[str]:
    """Return what is known beforehand about operators that do nothing."""
    stack = operators(callbacks)
    above = bounds(stack, group_size)
    told = [operator.notice(limit, group_size) for operator, limit in zip(stack, above, strict=False)]
    return [message for message in told if message]


def _check_read(stack: Sequence[Contract], place: int, name: str) -> None:
    """Undefined read: the field still has a neutral value that means nothing."""
    if name in MEANINGFUL or any(name in above.writes for above in stack[:place]):
        return
    reader, below = _name(stack[place]), [_name(late) for late in stack[place + 1 :] if name in late.writes]
    verb, writer = ("Move", below[0]) if below else ("Put", _usual_writer(name))
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
    twins = [
        above for above in stack[:place] if type(above) is type(operator) and above.arguments == operator.arguments
    ]
    if operator.state and twins:
        raise StackError(
            f"Two {_name(operator)} with the same arguments would share one state in a checkpoint. "
            "Change an argument of one, or keep only one, in trainer.callbacks."
        )


def _name(operator: Contract) -> str:
    return type(operator).__name__


def _usual_writer(name: str) -> str:
    """Name the operator that usually writes a field, or else the one that needs least."""
    found: list[type[Contract]] = []
    queue: list[type[Contract]] = [Contract]
    while queue:
        cls = queue.pop(0)
        queue.extend(cls.__subclasses__())
        if name in cls.writes and name not in cls.reads:
            found.append(cls)
    found.sort(key=lambda cls: (not cls.usual, len(cls.reads)))
    return found[0].__name__ if found else f"an operator that writes `{name}`"
