"""The base of costly probes: they store the ledger at their place and measure before the backward pass."""

import copy
from collections.abc import Mapping

from lightning.pytorch import LightningModule, Trainer
from torch import Tensor

from rlcredit.credit.alternatives import Credit
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.token_counts import TokenCounts
from rlcredit.record.artifacts import is_measurement_due, log_occasional_metrics
from rlcredit.training.module import PolicyModule


class PeriodicMeasurement:
    """Mixin for a probe that measures every ``every_n_steps`` steps, in the first update of a rollout.

    Metrics are logged under ``probe/<Class>/<quantity>`` at the steps at which they are measured, and kept in ``last``.
    """

    label: str
    every_n_steps: int
    seen: tuple[Rollout, Credit] | None = None
    last: Mapping[str, float] = {}

    def require_interval(self, steps: int) -> int:
        """Return a number of steps, or refuse it."""
        if steps < 1:
            raise ValueError(f"{type(self).__name__} expects every_n_steps >= 1, got {steps}.")
        return steps

    def assign(self, rollout: Rollout) -> dict[str, float]:
        """Store the credit at this place."""
        self.seen = (rollout, rollout.credit)
        return {}

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        """Measure if it is due; later updates of the same rollout have nothing to measure."""
        memory, self.seen = self.seen, None
        if memory is None or not is_measurement_due(trainer, memory[0], self.every_n_steps):
            return
        assert isinstance(pl_module, PolicyModule)
        rollout, credit = memory
        part = copy.copy(pl_module.select_minibatch(rollout))
        part.token_counts = TokenCounts()
        self.last = self.measure(trainer, pl_module, part, credit.first_rows(len(part.mask)))
        rollout.truth = part.truth
        rollout.token_counts.add(decoded_by_probes=part.token_counts.decoded)
        log_occasional_metrics(trainer, {f"probe/{self.label}/{name}": value for name, value in self.last.items()})

    def measure(self, trainer: Trainer, module: PolicyModule, rollout: Rollout, credit: Credit) -> Mapping[str, float]:
        """Return the metrics to log.

        Args:
            trainer: Trainer with the optimizer, its moments as they were after the last step.
            module: Module with the loss.
            rollout: Mini-batch of this update, with the credit that it uses.
            credit: Credit at the probe's place in the stack, of the same rows.

        """
        raise NotImplementedError
