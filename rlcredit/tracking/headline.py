"""The held-out result at the top of a run's page in MLflow, which lists metrics by name: held-out ones last."""

import json
from collections.abc import Mapping, Sequence

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.record.artifacts import find_run_folder, publish_tags

DESCRIPTION = "mlflow.note.content"
"""The tag that MLflow shows as the description of a run."""

Evaluation = tuple[int, Mapping[str, float]]
"""A step, and what was logged of the evaluation after it."""


class HeldOutSummary(Callback):
    """Tag the run after every evaluation with its held-out result and describe it by the first and the last of them.

    Below ``HeldOut``, from whose files it takes the first one. Tags are columns of MLflow's table of runs:
    ``held_out.pass_at_1``, ``held_out.step``.
    """

    @rank_zero_only
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Replace tags and description."""
        if trainer.sanity_checking:
            return
        logged = {name: float(value) for name, value in trainer.callback_metrics.items() if name.startswith("val/")}
        folder, latest = find_run_folder(trainer), (trainer.global_step, logged)
        earlier = [step for step in folder.evaluated_steps() if step < trainer.global_step]
        first = [(step, json.loads(folder.evaluation_file(step).read_text("utf-8"))["metrics"]) for step in earlier[:1]]
        publish_tags(
            trainer,
            {
                "held_out.step": str(latest[0]),
                **_make_held_out_tags(logged),
                DESCRIPTION: render_held_out_table([*first, latest]),
            },
        )


def render_held_out_table(evaluations: Sequence[Evaluation]) -> str:
    """Return a table of held-out results in Markdown, an evaluation a line.

    Example:
        >>> print(render_held_out_table([(0, {"val/pass_at_1": 0.4697, "val/loss": 1.0}), (100, {"val/pass_at_1": 0.97})]))
        | held out after | pass_at_1 |
        |---|---|
        | 0 steps | 0.470 |
        | 100 steps | 0.970 |

    """
    names = [name for name in evaluations[-1][1] if "pass_at_" in name]
    lines = [["held out after", *(name.removeprefix("val/") for name in names)], ["---"] * (1 + len(names))]
    for step, logged in evaluations:
        lines.append([f"{step} steps", *(f"{logged[name]:.3f}" if name in logged else "" for name in names)])
    return "\n".join(f"|{'|'.join(cells)}|" if set(cells) == {"---"} else f"| {' | '.join(cells)} |" for cells in lines)


def _make_held_out_tags(logged: Mapping[str, float]) -> dict[str, str]:
    named = {name.removeprefix("val/").replace("/", "."): value for name, value in logged.items() if "pass_at_" in name}
    return {f"held_out.{name}": f"{value:.4f}" for name, value in named.items()}
