"""What a credit operator is, and the two lints that reject a meaningless stack before a weight is loaded."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from rlcredit.rollout import FACTS, FIELDS, MEANINGFUL, NEUTRAL, Rollout

Metrics = Mapping[str, Tensor | float]
"""What an operator reports, by quantity."""


class StackError(ValueError):
    """A list of operators that cannot mean what it says; the message names the repair."""


class CreditOperator(Callback):
    """One line of a credit stack: reads some fields of the rollout, rebinds others, reports what it did.

    The class header declares the contract, ``class GTPO(CreditOperator, reads="signal advantages",
    writes="advantages")``. ``mask`` and ``group_size`` describe shapes and need not be declared. An operator without
    ``writes`` is a probe: it only watches.
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    writes: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, reads: str | None = None, writes: str | None = None, **kwargs: Any) -> None:
        """Record the contract, inherited where it is not given, and refuse one that names no field of the rollout."""
        super().__init_subclass__(**kwargs)
        cls.reads = cls.reads if reads is None else frozenset(reads.split())
        cls.writes = cls.writes if writes is None else frozenset(writes.split())
        unknown = (cls.reads - FIELDS) | (cls.writes - (FIELDS - FACTS))
        if unknown:
            raise TypeError(
                f"{cls.__name__} declares {sorted(unknown)}; rollouts have {sorted(FIELDS)}, facts read-only."
            )

    def __init__(self) -> None:
        self.label = type(self).__name__

    def assign(self, rollout: Rollout) -> Metrics:
        """Edit the ledger of ``rollout`` and return metrics; called under ``torch.no_grad``."""
        raise NotImplementedError

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Check the stack; number the second and later operators of one class, so that their metrics stay apart."""
        stack: list[Callback] = trainer.callbacks  # pyright: ignore[reportAttributeAccessIssue]
        check_stack(stack)
        twins = [callback for callback in stack if type(callback) is type(self)]
        place = twins.index(self) + 1
        self.label = type(self).__name__ + (f"_{place}" if place > 1 else "")

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Rollout, batch_idx: int
    ) -> None:
        """Assign credit in stack order and log the metrics under ``credit/<Operator>/<quantity>``."""
        metrics = self.checked(batch)
        named = {f"credit/{self.label}/{quantity}": value for quantity, value in metrics.items()}
        pl_module.log_dict(named, batch_size=len(batch.mask), sync_dist=trainer.world_size > 1)

    def checked(self, rollout: Rollout) -> Metrics:
        """Assign credit and hold the operator to its header.

        Raises:
            StackError: it rebound a field that it does not declare, or left advantages of another shape or not finite.

        """
        before = {name: getattr(rollout, name) for name in NEUTRAL}
        with torch.no_grad():
            metrics = self.assign(rollout)
        undeclared = {name for name, value in before.items() if getattr(rollout, name) is not value} - self.writes
        if undeclared:
            raise StackError(f"{self.label} rebinds {sorted(undeclared)} without declaring it in `writes`.")
        if rollout.advantages.shape != rollout.mask.shape:
            shape, wanted = tuple(rollout.advantages.shape), tuple(rollout.mask.shape)
            raise StackError(f"{self.label} leaves advantages of shape {shape}, expected {wanted}: one per token.")
        if not rollout.advantages[rollout.mask].isfinite().all():
            raise StackError(f"{self.label} leaves advantages that are not finite, at step {rollout.step}.")
        return metrics


def check_stack(callbacks: Iterable[Callback]) -> None:
    """Reject a stack that reads what nothing wrote, or writes what nothing will read.

    Args:
        callbacks: as listed in ``trainer.callbacks``; callbacks that are not credit operators are passed over.

    Raises:
        StackError: with the operator, the field and the repair.

    """
    stack = [callback for callback in callbacks if isinstance(callback, CreditOperator)]
    for place, operator in enumerate(stack):
        for name in sorted(operator.reads):
            _check_read(stack, place, name)
        for name in sorted(operator.writes):
            _check_write(stack, place, name)


def _check_read(stack: Sequence[CreditOperator], place: int, name: str) -> None:
    """Undefined read: the field still has a neutral value that means nothing."""
    if name in MEANINGFUL or any(name in above.writes for above in stack[:place]):
        return
    reader, below = _name(stack[place]), [_name(late) for late in stack[place + 1 :] if name in late.writes]
    verb, writer = ("Move", below[0]) if below else ("Put", _usual_writer(name))
    raise StackError(
        f"{reader} reads `{name}`, which no callback above it writes. "
        f"{verb} {writer} above {reader} in trainer.callbacks."
    )


def _check_write(stack: Sequence[CreditOperator], place: int, name: str) -> None:
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


def _name(operator: CreditOperator) -> str:
    return type(operator).__name__


def _usual_writer(name: str) -> str:
    """Name the operator that most simply writes a field: fewest reads, first defined."""
    found: list[type[CreditOperator]] = []
    queue: list[type[CreditOperator]] = [CreditOperator]
    while queue:
        cls = queue.pop(0)
        queue.extend(cls.__subclasses__())
        if name in cls.writes and name not in cls.reads:
            found.append(cls)
    return min(found, key=lambda cls: len(cls.reads)).__name__ if found else f"an operator that writes `{name}`"
