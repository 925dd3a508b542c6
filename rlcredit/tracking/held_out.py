"""The verdict on every held-out question and sample, for statistics that pair questions."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import torch.distributed as dist
from lightning.pytorch import Callback, LightningModule, Trainer

from rlcredit.functional.processes import has_other_processes
from rlcredit.record.artifacts import find_run_folder, publish_text
from rlcredit.tasks.example import Example
from rlcredit.tasks.held_out import HeldOutSet


def _hash_questions(examples: Sequence[Example]) -> str:
    questions = [(example.question, example.reference) for example in examples]
    return hashlib.sha256(json.dumps(questions).encode()).hexdigest()


class HeldOutVerdicts(Callback):
    """Write after every validation which samples of which question were right, and what was logged of it.

    ``right[i][j]`` is 1 if sample j of question ``numbers[i]`` was right. The mean of all rows is ``val/pass_at_1``.
    ``questions_sha256`` identifies questions and answers. Of further held-out sets the same three stand under ``sets``,
    by name.
    """

    def __init__(self) -> None:
        self.rows: list[dict[int, list[int]]] = []

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin with no question."""
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
        """Keep the verdicts of a batch."""
        self.rows[dataloader_idx].update(zip(batch.numbers, outputs["right"].int().tolist(), strict=True))

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the questions of all processes, in the order of their numbers."""
        if trainer.sanity_checking:
            return
        rows = self._of_all_processes()
        if not trainer.is_global_zero:
            return
        logged = trainer.callback_metrics.items()
        verdicts = {
            each.name: _collect_set_verdicts(each, of)
            for each, of in zip(_list_held_out_sets(trainer), rows, strict=True)
        }
        outcome = {
            "step": trainer.global_step,
            "metrics": {name: float(value) for name, value in logged if name.startswith("val/")},
            **verdicts.pop("", {"numbers": [], "questions_sha256": _hash_questions([]), "right": []}),
            **({"sets": verdicts} if verdicts else {}),
        }
        here = find_run_folder(trainer)
        name = here.evaluation_file(trainer.global_step).relative_to(here.path).as_posix()
        publish_text(trainer, name, json.dumps(outcome))

    def _of_all_processes(self) -> list[dict[int, list[int]]]:
        if not has_other_processes():
            return self.rows
        parts: list[list[dict[int, list[int]]]] = [[] for _ in range(dist.get_world_size())]
        dist.all_gather_object(parts, self.rows)
        return [{number: row for part in shares for number, row in part.items()} for shares in zip(*parts, strict=True)]


def _list_held_out_sets(trainer: Trainer) -> list[HeldOutSet]:
    return trainer.datamodule.held_out_sets  # pyright: ignore[reportAttributeAccessIssue]


def _collect_set_verdicts(asked: HeldOutSet, rows: dict[int, list[int]]) -> dict[str, Any]:
    """Return the questions of one set in the order of their numbers."""
    ordered = dict(sorted(rows.items()))
    digest = _hash_questions(asked.task.held_out_set)
    return {"numbers": list(ordered), "questions_sha256": digest, "right": list(ordered.values())}
