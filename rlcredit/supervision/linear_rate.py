"""A learning rate that moves on a straight line over the run, whether the run is measured in tokens or in steps."""

from typing import cast

from lightning.pytorch import Callback, LightningModule, Trainer

from rlcredit.base.lightning_private import read_callbacks
from rlcredit.credit.rollout import Rollout
from rlcredit.supervision.token_budget import TokenBudget
from rlcredit.training.module import PolicyModule


class LinearRate(Callback):
    """Move the learning rate on a straight line to ``end`` times its first value.

    The line runs over the tokens of the run's ``TokenBudget``, or over ``trainer.max_steps`` if it has none. A
    scheduler of PyTorch, in ``model.scheduler``, counts steps only.

    Args:
        end: Rate at the end of the run, as a share of the first one; 0 or more.

    """

    def __init__(self, end: float = 0.5) -> None:
        if not end >= 0:
            raise ValueError(f"LinearRate expects end >= 0, got {end:g}.")
        self.end = end

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse a run without an end, and a second schedule.

        Raises:
            ValueError: there is neither a budget nor a number of steps, or a scheduler too.

        """
        if stage != "fit":
            return
        if cast("PolicyModule", pl_module).scheduler is not None:
            raise ValueError("LinearRate and model.scheduler both set the learning rate. Keep one of them.")
        if find_token_budget(trainer) is None and trainer.max_steps < 1:
            raise ValueError("LinearRate needs to know where the run ends. Set trainer.max_steps, or add TokenBudget.")

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep the first rate of every group; a checkpoint holds it with the optimizer."""
        for group in trainer.optimizers[0].param_groups:
            group.setdefault("initial_lr", group["lr"])

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Rollout, batch_idx: int
    ) -> None:
        """Set the rate of the next update, and log it."""
        factor = 1 + (self.end - 1) * measure_used_share(trainer)
        for group in trainer.optimizers[0].param_groups:
            group["lr"] = group["initial_lr"] * factor
        pl_module.log("train/rate_factor", factor, batch_size=1)


def find_token_budget(trainer: Trainer) -> TokenBudget | None:
    """Return the budget that ends a run, if it has one."""
    return next((callback for callback in read_callbacks(trainer) if isinstance(callback, TokenBudget)), None)


def measure_used_share(trainer: Trainer) -> float:
    """Return the share of its tokens, or else of its steps, that a run has used before the current rollout."""
    budget = find_token_budget(trainer)
    if budget is None:
        return min(1.0, trainer.global_step / trainer.max_steps)
    return min(1.0, budget.counted / budget.budget)
