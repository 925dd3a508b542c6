"""The learning curve, as a picture."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.lightning_private import read_datamodule
from rlcredit.base.plot_style import ACCENT_COLOUR, MUTED_COLOUR, SECOND_COLOUR, create_figure, style_axes
from rlcredit.record.artifacts import find_run_folder, publish_file, warn_on_write_error
from rlcredit.record.journal import read_journal_entries
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule

Points = list[tuple[int, float]]


class LearningCurve(Callback):
    """Draw held-out pass@1 over the steps, with the solve rates of the training batches behind it.

    Both come from the record, so that the curve of a run that was interrupted begins where the run began.

    Args:
        title: Title of the picture.

    """

    def __init__(self, title: str = "") -> None:
        self.title = title

    @rank_zero_only
    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save the picture."""
        path = find_run_folder(trainer).learning_curve
        updates = cast("PolicyModule", pl_module).updates_per_rollout
        record = find_run_folder(trainer).record
        batches = [point for point in read_metric_points(record, "train/solve_rate") if point[0] % updates == 0]
        task = cast("Task", read_datamodule(trainer))
        held_out = {
            held_out_set.name: read_metric_points(record, held_out_set.name_metric("pass_at_1"))
            for held_out_set in task.held_out_sets
        }
        with warn_on_write_error(path):
            path.unlink(missing_ok=True)  # it may be a link, of a copy of the folder for example
            draw_learning_curve(batches, held_out, self.title, path)
            publish_file(trainer, path)


def read_metric_points(record: Path, name: str) -> Points:
    """Return the steps and values of a metric from a run's record."""
    entries = (entry for entry, _ in read_journal_entries(record) if name in entry.get("metrics", {}))
    return [(entry["step"], entry["metrics"][name]) for entry in entries]


def draw_learning_curve(batches: Points, held_out: Mapping[str, Points], title: str, path: Path) -> None:
    """Write the picture to ``path``.

    Args:
        batches: Solve rates of training batches.
        held_out: Values of pass@1 by held-out set; the set without a name is the task's own.
        title: Title of the picture.
        path: File that the picture is written to; overwritten.

    """
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415

    figure = create_figure(7.2, 4.0)
    axes = figure.subplots()
    if batches:
        axes.plot(*zip(*batches, strict=True), color=MUTED_COLOUR, linewidth=1, alpha=0.8, label="training batch")
    colours = [ACCENT_COLOUR, SECOND_COLOUR, *(f"C{number}" for number in range(2, 10))]
    for (name, points), colour in zip(held_out.items(), itertools.cycle(colours), strict=False):
        if not points:
            continue
        style: dict[str, Any] = {"linewidth": 2.2, "marker": "o", "markersize": 5, "label": name or "held out"}
        axes.plot(*zip(*points, strict=True), color=colour, **style)
        for place in {0, len(points) - 1}:
            step, value = points[place]
            box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
            style = {"ha": "center", "color": colour, "weight": "bold", "bbox": box}
            axes.annotate(f"{value:.0%}", (step, value), (0, 9), textcoords="offset points", **style)
    axes.set(xlabel="optimizer step", ylabel="solved (pass@1)", ylim=(0, 1.09))
    axes.locator_params(axis="x", integer=True)
    style_axes(axes, title)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=150)
