"""The distribution of the signal at every place where the probe is listed, in one picture."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only
from torch import Tensor

from rlcredit.base.lightning_private import read_callbacks
from rlcredit.base.plot_style import draw_distributions
from rlcredit.credit.contract import OperatorContract, select_operators
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.record.artifacts import is_picture_due, make_run_folder, publish_file, warn_on_write_error


class SignalHistogram(CreditOperator, reads="step signal plan_mask"):
    """Draw how the signal is distributed over planning and over execution tokens: the SEPA paper's Figure 1.

    Listed above and below SEPA it draws before and after, one panel for each place, into ``signal/step_<step>.png`` of
    the run and of its MLflow page; with several processes, the tokens that the first one sampled.

    Args:
        every_n_steps: Steps from one histogram to the next; the last step draws one too.

    """

    def __init__(self, every_n_steps: int = 20) -> None:
        super().__init__()
        if every_n_steps < 1:
            raise ValueError(f"SignalHistogram expects every_n_steps >= 1, got {every_n_steps}.")
        self.every_n_steps = every_n_steps
        self.seen: tuple[Rollout, Tensor, Tensor] | None = None

    def assign(self, rollout: Rollout) -> Metrics:
        """Remember the signal at this place until the step is over."""
        self.seen = (rollout, rollout.signal, rollout.plan_mask)
        return {}

    @rank_zero_only
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Rollout, batch_idx: int
    ) -> None:
        """Draw one panel for each histogram of the stack; only the last one draws."""
        stack = select_operators(read_callbacks(trainer))
        places = [place for place, operator in enumerate(stack) if isinstance(operator, SignalHistogram)]
        if is_picture_due(trainer, batch, self.every_n_steps) and stack[places[-1]] is self:
            path = make_run_folder(trainer) / "signal" / f"step_{batch.step:06d}.png"
            sources = ["Surprisal", *(_writer_name(op) for op in stack if "signal" in op.writes - op.reads)]
            with warn_on_write_error(path):
                draw_distributions(
                    [_describe_panel(stack[: place + 1]) for place in places], f"signal ({sources[-1]})", path
                )
                publish_file(trainer, path, "signal")


def _writer_name(operator: object) -> str:
    return type(operator).__name__


def _describe_panel(stack: Sequence[OperatorContract]) -> tuple[str, dict[str, np.ndarray]]:
    """Title and values of the last operator of a stack, a histogram."""
    histogram = stack[-1]
    assert isinstance(histogram, SignalHistogram)
    assert histogram.seen is not None
    rollout, signal, plan_mask = histogram.seen
    kinds = {"execution": rollout.mask & ~plan_mask, "planning": rollout.mask & plan_mask}
    writers = [_writer_name(op) for op in stack[:-1] if op.writes & {"signal", "plan_mask"}]
    title = f"{len(stack)}: signal after {writers[-1]}" if writers else f"{len(stack)}: signal as sampled"
    return title, {kind: signal[selection].cpu().numpy() for kind, selection in kinds.items()}
