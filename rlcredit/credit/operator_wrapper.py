"""Operators around another: they run it, and change what it leaves."""

from typing import TYPE_CHECKING, Any

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer


class OperatorWrapper(CreditOperator, state="operator_state"):
    """Base of operators that run another, which they take in call form; its state is theirs.

    Args:
        operator: Operator that is run.

    """

    def __init__(self, operator: CreditOperator) -> None:
        super().__init__()
        self.operator, self.costly, self.rewards = operator, operator.costly, operator.rewards
        self.state = ("operator_state",) if operator.state else ()

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments, the operator by its own, as a checkpoint stores them."""
        return {**super().arguments, "operator": (type(self.operator).__name__, self.operator.arguments)}

    @property
    def operator_state(self) -> dict[str, Any]:
        """What the operator cannot recompute."""
        return {name: getattr(self.operator, name) for name in self.operator.state}

    @operator_state.setter
    def operator_state(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self.operator, name, value)

    def setup(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        """Let the operator learn of the run what it needs."""
        super().setup(trainer, pl_module, stage)
        self.operator.setup(trainer, pl_module, stage)

    def run_operator(self, rollout: Rollout) -> Metrics:
        """Have the operator edit the ledger, under the name and seed of this one; return its metrics."""
        self.operator.label, self.operator.run_seed = self.label, self.run_seed
        return self.operator.assign(rollout)
