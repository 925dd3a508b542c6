"""The distribution of the signal at each place where one looks, in one picture."""

from typing import Any

import numpy as np
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from callbacks.base import CreditOperator, Metrics
from callbacks.contract import operators
from rlcredit.artifacts import folder, publish
from rlcredit.figures import draw_distributions
from rlcredit.rollout import Rollout


class SignalHistogram(CreditOperator, reads="step signal plan_mask"):
    """Draw how the signal is distributed over planning and over execution tokens: the SEPA paper's Figure 1.

    Listed above and below SEPA it draws before and after, one panel for each place, into ``signal/step_<step>.png`` of
    the run and of its MLflow page; with several processes, the tokens that the first one sampled.

    Args:
        every_n_steps: how often, besides the last step.

    """

    def __init__(self, every_n_steps: int = 20) -> None:
        super().__init__()
        if every_n_steps < 1:
            raise ValueError(f"SignalHistogram expects every_n_steps >= 1, got {every_n_steps}.")
        self.every_n_steps = every_n_steps
        self.kinds: dict[str, np.ndarray] = {}

    def assign(self, rollout: Rollout) -> Metrics:
        """Keep the values of this place until the step is over."""
        plan, execution = rollout.mask & rollout.plan_mask, rollout.mask & ~rollout.plan_mask
        kinds = {"execution": execution, "planning": plan}
        self.kinds = {kind: rollout.signal[where].cpu().numpy() for kind, where in kinds.items()}
        return {}

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Rollout, batch_idx: int
    ) -> None:
        """Let the last of them draw what all have seen."""
        stack = operators(trainer.callbacks)  # pyright: ignore[reportAttributeAccessIssue]
        places = [place for place, operator in enumerate(stack) if isinstance(operator, SignalHistogram)]
        due = batch.step % self.every_n_steps == 0 or trainer.global_step == trainer.max_steps
        if not due or stack[places[-1]] is not self:
            return
        panels = {}
        for place in places:
            writers = [type(above).__name__ for above in stack[:place] if "signal" in above.writes]
            panels[f"signal after {writers[-1]}" if writers else "signal as sampled"] = stack[place].kinds  # pyright: ignore[reportAttributeAccessIssue]
        path = folder(trainer) / "signal" / f"step_{batch.step:06d}.png"
        path.parent.mkdir(exist_ok=True)
        draw_distributions(panels, "signal, nats", path)
        publish(trainer, path, "signal")
