"""A run read back from its folder, as tables of pandas; torch and Lightning are not imported."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rlcredit.base.files import suggest_path
from rlcredit.record.journal import read_journal_entries
from rlcredit.run_folder.layout import RunFolder

if TYPE_CHECKING:
    import pandas as pd

Answer = tuple[int, str, int, int, bool]
"""Step, held-out set, number of the question, number of the sample, and whether it was right."""

BETWEEN_OPERATORS = re.compile(r" > (?=\w+(?:\(| > |$))")
"""Separator between the operators of a stack written in one line."""


@dataclasses.dataclass(frozen=True)
class RecordedRun:
    """The contents of a run's folder.

    Attributes:
        metrics: Metrics, one row per step and one column per name. Row ``s`` describes the policy after ``s`` steps:
            its held-out results, and its next update. A metric that was not logged there is NaN.
        held_out: Held-out answers, one row each: ``step``, ``set`` (empty for the task's own questions), ``question``,
            ``sample`` and ``right``.
        parameters: Parameters of the run by name, as text; empty before training.
        stack: Operators from top to bottom, each written as a call; empty for REINFORCE.

    """

    metrics: "pd.DataFrame"
    held_out: "pd.DataFrame"
    parameters: "pd.Series"
    stack: list[str]


def read_run(folder: Path | str) -> RecordedRun:
    """Read the folder of a run, which may still go on.

    Args:
        folder: Folder of the run, such as ``runs/grpo-seed0``.

    Raises:
        ValueError: there is no record in it.

    """
    import pandas as pd  # noqa: PLC0415  (half a second, which other uses of this package do not pay)

    run_folder = RunFolder(folder)
    if not run_folder.record.is_file():
        raise ValueError(
            f"{run_folder.path} holds no run: there is no {run_folder.record.name} in it. Pass the folder of a run."
            f"{suggest_path(run_folder.path)}"
        )
    steps: dict[int, dict[str, float]] = {}
    parameters: dict[str, str] = {}
    for entry, _ in read_journal_entries(run_folder.record):
        if "metrics" in entry:
            steps.setdefault(entry["step"], {}).update(entry["metrics"])
        parameters.update(entry.get("parameters", {}))
    metrics = pd.DataFrame(list(steps.values()), index=pd.Index(list(steps), dtype=int, name="step"))
    answers = list(_read_held_out_answers(run_folder))
    return RecordedRun(
        metrics=metrics.sort_index(),
        held_out=pd.DataFrame(answers, columns=["step", "set", "question", "sample", "right"]),
        parameters=pd.Series(parameters, dtype=object, name="value").rename_axis("parameter"),
        stack=split_stack(parameters.get("stack", "")),
    )


def split_stack(text: str) -> list[str]:
    """Return the operators of a stack that is written in one line.

    Example:
        >>> split_stack("GRPO(normalize_std=False) > SEPA > GTPO(beta=0.5)")
        ['GRPO(normalize_std=False)', 'SEPA', 'GTPO(beta=0.5)']
        >>> split_stack("REINFORCE")
        []

    """
    return [] if text in ("", "REINFORCE") else BETWEEN_OPERATORS.split(text)


def _read_held_out_answers(folder: RunFolder) -> Iterator[Answer]:
    """Yield every answer to every held-out question, in the order in which they were asked."""
    for step in folder.evaluated_steps():
        evaluation = folder.read_evaluation(step)
        for name, verdicts in {"": evaluation, **evaluation.get("sets", {})}.items():
            for question, samples in zip(verdicts["numbers"], verdicts["right"], strict=True):
                for sample, right in enumerate(samples):
                    yield step, name, question, sample, bool(right)
