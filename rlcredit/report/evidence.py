"""What a campaign has left on disk: finished runs as declared, and why others are not among them."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlcredit.campaign.cell import Cell, cells
from rlcredit.campaign.declaration import Declaration
from rlcredit.campaign.ledger import Ledger
from rlcredit.campaign.runs import outcome
from rlcredit.report.metric import Metric, held_out_metric
from rlcredit.statistics.pass_at_k import pass_at_k

Verdicts = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished run that was executed as declared.

    Args:
        condition: its name in the campaign.
        seed: of the run.
        numbers: of the held-out questions, P of them.
        right: 0/1 verdicts by step, each of shape ``(P, S)`` for S samples a question.
        metrics: what was logged of each evaluation, by step.
        entry: what the ledger says of the run.

    """

    condition: str
    seed: int
    numbers: tuple[int, ...]
    right: Mapping[int, Verdicts]
    metrics: Mapping[int, Mapping[str, float]]
    entry: Mapping[str, Any]

    def curve(self, name: str) -> dict[int, float]:
        """Return a held-out metric by step."""
        return {step: metrics[name] for step, metrics in self.metrics.items()}


@dataclasses.dataclass(frozen=True)
class Evidence:
    """All that a report may use.

    Args:
        declaration: of the campaign.
        ledger: of the campaign.
        runs: by condition and seed.
        refused: reasons, by the names of runs that are finished and not reported.
        absent: states, by the names of runs that are not finished.
        measures: what the primary metric of each condition measures.

    """

    declaration: Declaration
    ledger: Ledger
    runs: dict[tuple[str, int], Run]
    refused: dict[str, list[str]]
    absent: dict[str, str]
    measures: dict[str, Metric]

    @property
    def declared(self) -> int:
        """Return how many runs were declared."""
        return len(self.declaration.conditions) * len(self.declaration.seeds)

    def pass_k(self, condition: str) -> int:
        """Return k of the pass@k that a condition's evaluations report."""
        return int(self.measures[condition].settings["model.pass_k"])

    def of(self, condition: str) -> list[Run]:
        """Return the runs of a condition, in the order of the seeds."""
        return [self.runs[condition, seed] for seed in self.declaration.seeds if (condition, seed) in self.runs]

    def paired(self, first: str, second: str) -> Iterator[tuple[Run, Run]]:
        """Yield the runs of two conditions with common seeds."""
        for run in self.of(first):
            if (second, run.seed) in self.runs:
                yield run, self.runs[second, run.seed]

    def per_question(self, runs: list[Run], metric: str) -> Verdicts:
        """Return the primary or another pass@ metric of every question after the last step, shape ``(R, P, S)``."""
        right = np.stack([run.right[self.declaration.steps] for run in runs])
        if metric == "val/pass_at_1":
            return right
        return pass_at_k(right.shape[-1], right.sum(-1), self.pass_k(runs[0].condition))[..., None]


def collected(root: Path) -> Evidence:
    """Read the folder of a campaign.

    Raises:
        ValueError: there is no campaign in it.

    """
    ledger = Ledger(root)
    if not ledger.fixed:
        raise ValueError(f"{root} holds no campaign: there is no declaration in {ledger.path}.")
    declaration = Declaration.restored(ledger.content["declaration"])
    configs = ledger.content["configs"]
    evidence = Evidence(
        declaration,
        ledger,
        runs={},
        refused={},
        absent={},
        measures={name: held_out_metric(declaration, config) for name, config in configs.items()},
    )
    for cell in cells(declaration, root):
        if not ledger.finished(cell):
            evidence.absent[cell.name] = ledger.of(cell).get("state", "not begun")
            continue
        run = _read(cell, ledger.of(cell))
        if reasons := [*ledger.of(cell)["differences"], *_inconsistent(run, evidence)]:
            evidence.refused[cell.name] = reasons
        else:
            evidence.runs[cell.condition, cell.seed] = run
    return evidence


def _read(cell: Cell, entry: Mapping[str, Any]) -> Run:
    found = {int(step): outcome(cell, int(step)) for step in entry["metrics"]}
    kept = {step: each for step, each in found.items() if each}
    return Run(
        cell.condition,
        cell.seed,
        tuple(next((each["numbers"] for each in kept.values()), ())),
        {step: np.asarray(each["right"], dtype=np.float64) for step, each in kept.items()},
        {step: each["metrics"] for step, each in kept.items()},
        entry,
    )


def _inconsistent(run: Run, evidence: Evidence) -> Iterator[str]:
    """Say where the files of a run contradict its ledger entry, or its questions those of other runs."""
    stored, ledger = json.dumps(_by_step(run.metrics)), json.dumps(_by_step(run.entry["metrics"]))
    if stored != ledger:
        yield "its held-out files are not those that the ledger has recorded"
    for step, right in run.right.items():
        told, counted = run.metrics[step]["val/pass_at_1"], float(right.mean())
        if abs(told - counted) > 1e-6:
            yield f"step {step}: pass@1 is {told:.6f} in the metrics and {counted:.6f} in the verdicts"
    for other in evidence.of(run.condition)[:1]:
        if (other.numbers, other.right.keys()) != (run.numbers, run.right.keys()):
            yield f"its questions or evaluations are not those of seed {other.seed}"


def _by_step(metrics: Mapping[Any, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {str(step): dict(sorted(metrics[step].items())) for step in sorted(metrics, key=int)}
