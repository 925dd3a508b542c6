"""The held-out evaluation of a run, which also runs after the last step.

Every verdict goes into a file, and the result stands on top of MLflow's page.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

import torch.distributed as dist
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.lightning_private import read_datamodule
from rlcredit.formulas.distributed import has_other_processes
from rlcredit.pages.tables import Table
from rlcredit.record.artifacts import find_run_folder, publish_tags, publish_text
from rlcredit.run_folder.layout import RunFolder
from rlcredit.tasks.example import Example
from rlcredit.tasks.held_out_sets import HeldOutSet
from rlcredit.training.module import PolicyModule


def _hash_questions(examples: Sequence[Example]) -> str:
    questions = [(example.question, example.reference) for example in examples]
    return hashlib.sha256(json.dumps(questions).encode()).hexdigest()


class HeldOutVerdicts(Callback):
    """Write the verdict on every sample of every question after each validation, and the metrics logged for it.

    ``right[i][j]`` is 1 if sample j of question ``numbers[i]`` was right. The mean of all rows is ``val/pass_at_1``.
    ``questions_sha256`` identifies questions and answers. Of further held-out sets the same three stand under ``sets``,
    by name. ``tokens`` is what training had cost by then; see :class:`rlcredit.credit.token_counts.TokenCounts`.
    """

    def __init__(self) -> None:
        self.rows: list[dict[int, list[int]]] = []

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start with no questions."""
        self.rows = [{} for _ in _list_held_out_sets(trainer)]

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Store the verdicts of a batch."""
        self.rows[dataloader_idx].update(zip(batch.numbers, outputs["right"].int().tolist(), strict=True))

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the questions of all processes, in the order of their numbers."""
        if trainer.sanity_checking:
            return
        rows = self._of_all_processes()
        if not trainer.is_global_zero:
            return
        metrics = trainer.callback_metrics.items()
        verdicts = {
            held_out_set.name: _collect_set_verdicts(held_out_set, set_rows)
            for held_out_set, set_rows in zip(_list_held_out_sets(trainer), rows, strict=True)
        }
        costs = cast("PolicyModule", pl_module).state.token_counts
        outcome = {
            "step": trainer.global_step,
            **({"tokens": asdict(costs)} if costs else {}),
            "metrics": {name: float(value) for name, value in metrics if name.startswith("val/")},
            **verdicts.pop("", {"numbers": [], "questions_sha256": _hash_questions([]), "right": []}),
            **({"sets": verdicts} if verdicts else {}),
        }
        folder = find_run_folder(trainer)
        name = folder.evaluation_file(trainer.global_step).relative_to(folder.path).as_posix()
        publish_text(trainer, name, json.dumps(outcome))

    def _of_all_processes(self) -> list[dict[int, list[int]]]:
        if not has_other_processes():
            return self.rows
        parts: list[list[dict[int, list[int]]]] = [[] for _ in range(dist.get_world_size())]
        dist.all_gather_object(parts, self.rows)
        return [{number: row for part in shares for number, row in part.items()} for shares in zip(*parts, strict=True)]


def _list_held_out_sets(trainer: Trainer) -> list[HeldOutSet]:
    return read_datamodule(trainer).held_out_sets


def _collect_set_verdicts(question_set: HeldOutSet, rows: dict[int, list[int]]) -> dict[str, Any]:
    """Return the questions of one set in the order of their numbers."""
    verdicts = dict(sorted(rows.items()))
    digest = _hash_questions(question_set.task.held_out_set)
    return {"numbers": list(verdicts), "questions_sha256": digest, "right": list(verdicts.values())}


DESCRIPTION_TAG = "mlflow.note.content"
"""The tag that MLflow shows as the description of a run."""

Evaluation = tuple[int, Mapping[str, float]]
"""A step, and what was logged of the evaluation after it."""


class HeldOutSummary(Callback):
    """Tag the run with its latest held-out result, and describe it by the first and the latest one.

    Below ``HeldOut``, from whose files it takes the first one. Tags are columns of MLflow's table of runs:
    ``held_out.pass_at_1``, ``held_out.step``.
    """

    @rank_zero_only
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Replace tags and description."""
        if trainer.sanity_checking:
            return
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items() if name.startswith("val/")}
        folder, latest = find_run_folder(trainer), (trainer.global_step, metrics)
        steps = [step for step in folder.evaluated_steps() if step < trainer.global_step]
        start = [(step, folder.read_evaluation(step)["metrics"]) for step in steps[:1]]
        publish_tags(
            trainer,
            {
                "held_out.step": str(latest[0]),
                **_make_held_out_tags(metrics),
                DESCRIPTION_TAG: render_held_out_table([*start, latest]),
            },
        )


def render_held_out_value(name: str, metrics: Mapping[str, Any]) -> str:
    """Return a held-out result with three decimals; there is none where no answer of its set was judged.

    Args:
        name: Name of the metric.
        metrics: Metrics of the evaluation by name.

    Example:
        >>> unjudged = {"val/pass_at_1": 0.0, "val/unjudged": 1.0, "val/aime/pass_at_1": 0.25}
        >>> render_held_out_value("val/pass_at_1", unjudged), render_held_out_value("val/aime/pass_at_1", unjudged)
        ('not judged', '0.250')

    """
    place, _, quantity = name.rpartition("/")
    is_result = "pass_at_" in quantity or quantity == "reward"
    is_unjudged = is_result and float(metrics.get(f"{place}/unjudged", 0.0)) == 1.0
    return "not judged" if is_unjudged else f"{float(metrics[name]):.3f}"


def describe_held_out_change(folder: RunFolder, last_step: int | None) -> str | None:
    """Return held-out pass@1 at the first evaluation of a run and at a step; None where it was not asked at both.

    Args:
        folder: Folder of the run.
        last_step: Step of the second evaluation; no evaluation if None.

    """
    steps = folder.evaluated_steps()
    if last_step not in steps or len(steps) < 2:
        return None
    results = [folder.read_evaluation(step)["metrics"] for step in (steps[0], last_step)]
    values = [render_held_out_value("val/pass_at_1", metrics) for metrics in results]
    return f"{values[0]} after {steps[0]} steps, {values[1]} after {last_step}"


def render_held_out_table(evaluations: Sequence[Evaluation]) -> str:
    """Return a Markdown table of held-out results, one evaluation per line.

    Example:
        >>> first, latest = {"val/pass_at_1": 0.4697, "val/loss": 1.0}, {"val/pass_at_1": 0.97}
        >>> print(render_held_out_table([(0, first), (100, latest)]))
        | held out after | pass_at_1 |
        |---|---|
        | 0 steps | 0.470 |
        | 100 steps | 0.970 |

    """
    names = [name for name in evaluations[-1][1] if "pass_at_" in name]
    rows = [
        (f"{step} steps", *(render_held_out_value(name, metrics) if name in metrics else "" for name in names))
        for step, metrics in evaluations
    ]
    return Table(("held out after", *(name.removeprefix("val/") for name in names)), rows).to_markdown()


def _make_held_out_tags(metrics: Mapping[str, float]) -> dict[str, str]:
    results = {
        name.removeprefix("val/").replace("/", "."): value for name, value in metrics.items() if "pass_at_" in name
    }
    return {f"held_out.{name}": f"{value:.4f}" for name, value in results.items()}


class FinalEvaluation(Callback):
    """Evaluate the held-out questions after the last step.

    Lightning evaluates once more when a trainer is told to stop; the last step is where it would stop anyway. Where the
    interval falls on it there is one evaluation, not two.
    """

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Tell the trainer to stop after the last step."""
        if trainer.global_step == trainer.max_steps:
            trainer.should_stop = True
