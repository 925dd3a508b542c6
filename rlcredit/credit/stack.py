"""A stack of operators: one callback that assigns credit."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rlcredit.credit.contract import StackWarning
from rlcredit.credit.operator import Callback, CreditOperator
from rlcredit.credit.operator_state import label_operators, move_state, note_credit
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.stack_checks import bound_advantages, check_stack

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

    from rlcredit.training.module import PolicyModule


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
        for operator in self.operators:
            operator.assign_checked(fresh)
            note_credit(fresh, operator)
        return fresh

    def setup(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        """Check the stack, number the second and later operators of one class, and hand on the run's seed."""
        from rlcredit.base.lightning_private import read_callbacks  # noqa: PLC0415  (credit is assigned without Lightning, too)

        callbacks = read_callbacks(trainer)
        check_stack(callbacks)
        self.operators = [callback for callback in callbacks if isinstance(callback, CreditOperator)]
        module = cast("PolicyModule", pl_module)
        group_size = module.sampling.completions
        limits = bound_advantages(self.operators, group_size, module.task.has_real_rewards)
        label_operators(self.operators, module.seed)
        for operator, limit in zip(self.operators, limits, strict=False):
            if operator.state:
                operator.check_state()  # refused now rather than at the first checkpoint
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


def _log_metrics(
    trainer: "Trainer", module: "LightningModule", operator: CreditOperator, metrics: Mapping[str, Any], rows: int
) -> None:
    """Log what an operator reports, reduced over processes as the end of its name says."""
    for quantity, value in metrics.items():
        ending = quantity.rpartition("_")[2]
        over_ranks = ending if ending in ("min", "max") else "mean"
        name = f"credit/{operator.label}/{quantity}"
        module.log(name, value, reduce_fx=over_ranks, batch_size=rows, sync_dist=trainer.world_size > 1)
