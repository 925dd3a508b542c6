"""The learning curve, as a picture."""

from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.artifacts import folder, publish
from rlcredit.figures import ACCENT, MUTED, finish, new_figure

Points = list[tuple[int, float]]


class LearningCurve(Callback):
    """Draw held-out pass@1 over the steps, with the solve rates of the training batches behind it.

    Args:
        title: of the picture.

    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.held_out: Points = []
        self.batches: Points = []

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Remember the batch, once."""
        if batch.update == 0:
            self.batches.append((trainer.global_step - 1, float(trainer.callback_metrics["train/solve_rate"])))

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Remember the held-out result."""
        if not trainer.sanity_checking:
            self.held_out.append((trainer.global_step, float(trainer.callback_metrics["val/pass_at_1"])))

    @rank_zero_only
    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save and upload the picture."""
        path = folder(trainer) / "learning_curve.png"
        draw(self.batches, self.held_out, self.title, path)
        publish(trainer, path)

    def state_dict(self) -> dict[str, Points]:
        """Survive a resume: the curve begins where the run began."""
        return {"held_out": self.held_out, "batches": self.batches}

    def load_state_dict(self, state_dict: dict[str, Points]) -> None:
        """Continue the curve."""
        self.held_out = [(step, value) for step, value in state_dict["held_out"]]
        self.batches = [(step, value) for step, value in state_dict["batches"]]


def draw(batches: Points, held_out: Points, title: str, path: Path) -> None:
    """Write the picture to ``path``."""
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415

    figure = new_figure(7.2, 4.0)
    axes = figure.subplots()
    if batches:
        axes.plot(*zip(*batches, strict=True), color=MUTED, linewidth=1, alpha=0.8, label="training batch")
    if held_out:
        axes.plot(*zip(*held_out, strict=True), color=ACCENT, linewidth=2.2, marker="o", markersize=5, label="held out")
        for place in {0, len(held_out) - 1}:
            step, value = held_out[place]
            box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
            style: dict[str, Any] = {"ha": "center", "color": ACCENT, "weight": "bold", "bbox": box}
            axes.annotate(f"{value:.0%}", (step, value), (0, 9), textcoords="offset points", **style)
    axes.set(xlabel="optimizer step", ylabel="solved (pass@1)", ylim=(0, 1.09))
    finish(axes, title)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=150)
