"""A stack of operators: checked like a program before weights are loaded, then one callback that assigns credit."""

import inspect
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rlcredit.credit.catalogue import find_usual_writer
from rlcredit.credit.contract import OperatorContract, StackError, StackWarning, select_operators
from rlcredit.credit.operator import Callback, CreditOperator, move_state
from rlcredit.credit.rollout import MEANINGFUL, Rollout

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

    from rlcredit.training.module import PolicyModule

CREDIT = frozenset(["rewards", "advantages"])
"""Fields that are credit or its sources; the others describe tokens."""

BYPRODUCTS = frozenset(["critic"])
"""Fields that may be written although nothing reads them: a critic's values are used without the critic, too."""


class CreditStack(Callback):
    """Assigns credit to every rollout by a list of operators, in its order.

    The training module adds one to its trainer, where the first operator of ``trainer.callbacks`` stands. Without a
    trainer, :meth:`assign` does the same to any rollout.

    Args:
        operators: Operators and probes, in the order in which they act; those of the trainer if None.

    Raises:
        StackError: the list is no program; see :func:`check_stack`.

    Example:
        >>> from callbacks import GRPO, GTPO
        >>> len(CreditStack([GRPO(), GTPO()]).operators)
        2

    """

    def __init__(self, operators: Sequence[CreditOperator] | None = None) -> None:
        self.operators = list(operators or ())
        check_stack(self.operators)
        self._watches = True

    @classmethod
    def insert_into(cls, callbacks: list[Any]) -> None:
        """Put a stack in front of the first operator of a trainer's callbacks, unless there is one."""
        if any(isinstance(callback, cls) for callback in callbacks):
            return
        places = [place for place, callback in enumerate(callbacks) if isinstance(callback, CreditOperator)]
        if places:
            callbacks.insert(places[0], cls())

    def assign(self, rollout: Rollout) -> Rollout:
        """Return the same facts with the stack's ledger; the given rollout stays as it is.

        Raises:
            StackError: an operator does not do what its header says; see :meth:`CreditOperator.assign_checked`.

        """
        fresh = rollout.copy_with_neutral_ledger()
        fresh.trail = ()
        for operator in self.operators:
            operator.assign_checked(fresh)
            note_credit(fresh, operator)
        return fresh

    def setup(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        """Check the stack, number the second and later operators of one class, and hand on the run's seed."""
        from rlcredit.base.lightning_private import read_callbacks  # noqa: PLC0415  (credit is assigned without Lightning, too)

        listed = read_callbacks(trainer)
        check_stack(listed)
        self.operators = [callback for callback in listed if isinstance(callback, CreditOperator)]
        module = cast("PolicyModule", pl_module)
        group_size = module.sampling.completions
        limits = bound_advantages(self.operators, group_size)
        counted: dict[type, int] = {}
        for operator, limit in zip(self.operators, limits, strict=False):
            if operator.state:
                operator.check_state()  # refused now rather than at the first checkpoint
            counted[type(operator)] = place = counted.get(type(operator), 0) + 1
            operator.label = type(operator).__name__ + (f"_{place}" if place > 1 else "")
            operator.run_seed = module.seed
            module.needs.update(operator.reads)
            notice = operator.notice(limit, group_size)
            if notice and stage == "fit" and trainer.is_global_zero:
                warnings.warn(notice, StackWarning, stacklevel=2)

    def on_train_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Move what operators have learned to the device of the run, once a checkpoint has been restored."""
        for operator in self.operators:
            move_state(operator, pl_module.device)

    def on_train_batch_start(
        self, trainer: "Trainer", pl_module: "LightningModule", batch: Rollout, batch_idx: int
    ) -> None:
        """Assign credit to a fresh rollout and log metrics as ``credit/<Operator>/<quantity>``.

        Credit is assigned once, to all prompts, before the first update of the rollout. What operators read is noted
        in the first rollout only.
        """
        if batch.update:
            return
        for operator in self.operators:
            with cast("PolicyModule", pl_module).stop_on_not_finite(batch):
                metrics = operator.assign_checked(batch, watch=self._watches)
            note_credit(batch, operator)
            _log_metrics(trainer, pl_module, operator, metrics, len(batch.mask))
        self._watches = False


def note_credit(rollout: Rollout, operator: CreditOperator) -> None:
    """Add the credit after an operator to the rollout's trail, if the operator writes any."""
    if "advantages" in operator.writes:
        rollout.trail = (*rollout.trail, (operator.label, rollout.advantages))


def _log_metrics(
    trainer: "Trainer", module: "LightningModule", operator: CreditOperator, metrics: Mapping[str, Any], rows: int
) -> None:
    """Log what an operator reports, reduced over processes as the end of its name says."""
    for quantity, value in metrics.items():
        ending = quantity.rpartition("_")[2]
        over_ranks = ending if ending in ("min", "max") else "mean"
        name = f"credit/{operator.label}/{quantity}"
        module.log(name, value, reduce_fx=over_ranks, batch_size=rows, sync_dist=trainer.world_size > 1)


def check_stack(callbacks: Iterable[object]) -> None:
    """Reject a stack that reads what nothing wrote, or writes what does not reach the advantages.

    Args:
        callbacks: Callbacks as listed in ``trainer.callbacks``; those that are not credit operators are passed over.

    Raises:
        StackError: with the operator, the field and the repair.

    """
    stack = select_operators(callbacks)
    for place, operator in enumerate(stack):
        for name in sorted(operator.reads):
            _refuse_undefined_read(stack, place, name)
        _refuse_ambiguous_state(stack, place)
    for place in reversed(range(len(stack))):  # what feeds a dead write is dead too: the lowest is the one at fault
        for name in sorted(stack[place].writes - BYPRODUCTS):
            _refuse_dead_write(stack, place, name)


def bound_advantages(stack: Sequence[OperatorContract], group_size: int) -> list[float]:
    """Return the largest advantage above each operator and, last, below all; the neutral ledger holds rewards.

    Infinity where none is known, and where credit is made of shaped rewards, since these may leave [0, 1].
    """
    limits, shaped, neutral = [1.0], False, True
    for operator in stack:
        bound = operator.bound(limits[-1], group_size)
        shaped, neutral = shaped or "rewards" in operator.writes, neutral and "advantages" not in operator.writes
        made_of_rewards = neutral or operator.reads | operator.writes >= CREDIT
        limits.append(math.inf if shaped and made_of_rewards else bound)
    return limits


def explain_idle_operators(callbacks: Iterable[object], group_size: int) -> list[str]:
    """Return warnings about operators that cannot have an effect."""
    stack = select_operators(callbacks)
    above = bound_advantages(stack, group_size)
    messages = [operator.notice(limit, group_size) for operator, limit in zip(stack, above, strict=False)]
    return [message for message in messages if message]


def _refuse_undefined_read(stack: Sequence[OperatorContract], place: int, name: str) -> None:
    """Refuse an undefined read: the field still has a neutral value that means nothing."""
    if name in MEANINGFUL or any(name in above.writes for above in stack[:place]):
        return
    reader, below = (
        _operator_name(stack[place]),
        [_operator_name(late) for late in stack[place + 1 :] if name in late.writes],
    )
    usual = find_usual_writer(name)
    named = usual.__name__ if usual else f"an operator that writes `{name}`"
    verb, writer = ("Move", below[0]) if below else ("Put", named)
    raise StackError(
        f"{reader} reads `{name}`, which no callback above it writes. "
        f"{verb} {writer} above {reader} in trainer.callbacks."
    )


def _refuse_dead_write(stack: Sequence[OperatorContract], place: int, name: str) -> None:
    """Refuse a dead write: it is overwritten or unused before it has reached the advantages."""
    used, shown = _trace_field_uses(stack)
    if name in used[place + 1]:
        return
    writer, below = stack[place], stack[place + 1 :]
    overwriting = next((later for later in below if name in later.writes), writer)
    if overwriting is not writer and name not in overwriting.reads:
        other = _operator_name(overwriting)
        repair = f"Move {other} above {_operator_name(writer)}" if name in writer.reads else "Keep only one of the two"
        raise StackError(
            f"{other} overwrites the `{name}` of {_operator_name(writer)} before anything uses it. "
            f"{repair} in trainer.callbacks."
        )
    above = enumerate(stack[:place])
    readers = [_operator_name(reader) for at, reader in above if name in reader.reads and reader.writes & used[at + 1]]
    if name in shown[place + 1] and not readers:
        return
    repair = (
        f"Move {_operator_name(writer)} above {readers[0]}"
        if readers
        else f"Remove {_operator_name(writer)} from the list"
    )
    where = "in trainer.callbacks." if readers else "trainer.callbacks."
    nothing = "which only probes read" if name in shown[place + 1] else "which nothing below it reads"
    raise StackError(f"{_operator_name(writer)} writes `{name}`, {nothing}. {repair} {where}")


def _trace_field_uses(stack: Sequence[OperatorContract]) -> tuple[list[set[str]], list[set[str]]]:
    """Return which fields, as they are above each operator and, last, below all, reach the advantages, and a probe.

    Advantages that nobody has written are made of the rewards: there, who uses these uses those. What a probe shows is
    a use of fields that describe tokens, for there are stacks that only measure; of credit it is none.
    """
    used, shown = [{"advantages", "alternatives", "continuations"}], [set[str]()]
    neutral = [not any("advantages" in above.writes for above in stack[:place]) for place in range(len(stack) + 1)]
    for place in reversed(range(len(stack) + 1)):
        if neutral[place] and "advantages" in used[0]:
            used[0] |= {"rewards"}
        if place:
            operator = stack[place - 1]
            for fields, through in ((used, operator.writes & used[0]), (shown, operator.writes & shown[0])):
                fields.insert(0, (fields[0] - operator.writes) | operator.reads if through else set(fields[0]))
            shown[0] = (shown[0] | (set() if operator.writes else operator.reads)) - CREDIT
    return used, shown


def _refuse_ambiguous_state(stack: Sequence[OperatorContract], place: int) -> None:
    """Refuse operators that a checkpoint could not tell apart by class and arguments."""
    operator = stack[place]
    if not operator.state:
        return
    if lost := [name for name in inspect.signature(type(operator)).parameters if name not in operator.arguments]:
        raise StackError(
            f"{_operator_name(operator)} must keep {lost} under the same name: a checkpoint knows it by its arguments."
        )
    twins = [
        above for above in stack[:place] if type(above) is type(operator) and above.arguments == operator.arguments
    ]
    if twins:
        raise StackError(
            f"Two {_operator_name(operator)} with the same arguments would share one state in a checkpoint. "
            "Change an argument of one, or keep only one, in trainer.callbacks."
        )


def _operator_name(operator: OperatorContract) -> str:
    return type(operator).__name__
