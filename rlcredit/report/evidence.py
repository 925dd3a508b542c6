"""The evidence of a campaign on disk: finished runs that ran as declared, and why others are left out."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlcredit.base.files import file_sha256, suggest_path
from rlcredit.campaign.campaign_record import CampaignRecord, is_campaign_running
from rlcredit.campaign.declaration import CampaignDeclaration, DeclaredBudget
from rlcredit.campaign.evaluation_marks import locate_evaluations
from rlcredit.campaign.metric_definition import MetricDefinition, define_held_out_metric, list_metric_differences
from rlcredit.campaign.record_schema import read_evaluation_file, restore_declaration
from rlcredit.campaign.run_spec import RunSpec, list_run_specs
from rlcredit.statistics.accuracy_at_k import pass_at_k
from rlcredit.statistics.run_aggregates import learning_curve_area

Verdicts = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class FinishedRun:
    """A finished run that was executed as declared.

    Args:
        condition: Name of the condition in the campaign.
        seed: Seed of the run.
        questions: Hash and numbers of the held-out questions, P of them.
        right: Verdicts, 0 or 1, by place, each of shape ``(P, S)`` for S samples a question. A place is a step, or in
            a campaign with a budget of tokens the mark of the budget at which the run was evaluated.
        metrics: Metrics logged at each evaluation, by place.
        entry: Entry of the run in the campaign's ledger.
        steps: Steps of the evaluations, by place.
        tokens: Tokens counted by each evaluation, by kind and place; empty if the run has not counted them.

    """

    condition: str
    seed: int
    questions: tuple[str, tuple[int, ...]]
    right: Mapping[int, Verdicts]
    metrics: Mapping[int, Mapping[str, float]]
    entry: Mapping[str, Any]
    steps: Mapping[int, int] = dataclasses.field(default_factory=dict)
    tokens: Mapping[int, Mapping[str, int]] = dataclasses.field(default_factory=dict)

    @property
    def question_key(self) -> tuple[Any, ...]:
        """Key that two runs must share to be compared: their questions, and the places at which they were asked."""
        return (*self.questions, *self.right)

    def curve(self, name: str) -> dict[int, float]:
        """Return the values of a held-out metric by place."""
        return {step: metrics[name] for step, metrics in self.metrics.items()}

    def final_value(self, name: str) -> float:
        """Return the value of a held-out metric after the last step."""
        return self.metrics[max(self.metrics)][name]

    def value_at_tokens(self, name: str, kind: str, tokens: float) -> float:
        """Return a held-out metric at so many tokens of a kind, on a straight line between two evaluations."""
        token_counts = [counts[kind] for counts in self.tokens.values()]
        return float(np.interp(tokens, token_counts, [self.metrics[place][name] for place in self.tokens]))


@dataclasses.dataclass(frozen=True)
class CampaignEvidence:
    """Everything that a report may use.

    Args:
        declaration: Declaration of the campaign.
        ledger: Ledger of the campaign.
        runs: Finished runs by condition and seed.
        refused: Reasons, by the names of runs that are finished and not reported.
        absent: States, by the names of runs that are not finished.
        measures: Definition of the primary metric in each condition.

    """

    declaration: CampaignDeclaration
    ledger: CampaignRecord
    runs: dict[tuple[str, int], FinishedRun]
    refused: dict[str, list[str]]
    absent: dict[str, str]
    measures: dict[str, MetricDefinition]

    @property
    def declared_count(self) -> int:
        """Return the number of declared runs."""
        return len(self.declaration.conditions) * len(self.declaration.seeds)

    @property
    def has_own_questions(self) -> bool:
        """Whether every seed has held-out questions of its own."""
        return self.declaration.held_out.questions == "by_seed"

    def list_metric_differences(self, condition: str, baseline: str) -> list[str]:
        """Return the differences between the primary metrics of two conditions; none if they can be compared."""
        return list_metric_differences(self.measures[condition], self.measures[baseline], (condition, baseline))

    def pass_k(self, condition: str) -> int:
        """Return the k of the pass@k that a condition's evaluations report."""
        settings = self.measures[condition].settings
        return int(settings.get("data.init_args.held_out_k") or settings["model.pass_k"])

    def runs_of(self, condition: str) -> list[FinishedRun]:
        """Return the runs of a condition, in the order of the seeds."""
        return [self.runs[condition, seed] for seed in self.declaration.seeds if (condition, seed) in self.runs]

    def iterate_pairs(self, condition: str, other_condition: str) -> Iterator[tuple[FinishedRun, FinishedRun]]:
        """Yield the pairs of runs of two conditions that share a seed."""
        for run in self.runs_of(condition):
            if (other_condition, run.seed) in self.runs:
                yield run, self.runs[other_condition, run.seed]

    def summarised_outcomes(self, runs: Sequence[FinishedRun]) -> Verdicts:
        """Return the primary metric of every question at the end of the runs, or the area under its curve."""
        primary = self.declaration.primary
        if self.declaration.summary != "area":
            return self.question_outcomes(runs, primary)
        places = list(runs[0].right)
        curves = [self.question_outcomes(runs, primary, place) for place in places]
        return learning_curve_area(places, np.stack(curves, -1))

    def question_outcomes(self, runs: Sequence[FinishedRun], metric: str, place: int | None = None) -> Verdicts:
        """Return pass@1 by sample, or pass@k, of every question.

        Args:
            runs: Runs of one condition, R of them.
            metric: Metric, ``val/pass_at_1`` or ``val/pass_at_k``.
            place: Place of the evaluation; the last one if None.

        Returns:
            Shape ``(R, P, S)``; S is 1 for pass@k.

        """
        right = np.stack([run.right[self.declaration.end if place is None else place] for run in runs])
        if metric == "val/pass_at_1":
            return right
        return pass_at_k(right.shape[-1], right.sum(-1), self.pass_k(runs[0].condition))[..., None]


def read_campaign_evidence(root: Path) -> CampaignEvidence:
    """Read the evidence of a campaign from its folder.

    Raises:
        ValueError: there is no campaign in it.

    """
    if not root.is_dir():
        raise ValueError(f"there is no folder {root}.{suggest_path(root)}")
    ledger = CampaignRecord(root)
    if not ledger.is_fixed:
        raise ValueError(f"{root} holds no campaign: there is no declaration in {ledger.path}.")
    declaration = restore_declaration(ledger.content, ledger.path)
    configs = ledger.content["configs"]
    evidence = CampaignEvidence(
        declaration,
        ledger,
        runs={},
        refused={},
        absent={},
        measures={name: define_held_out_metric(declaration, config) for name, config in configs.items()},
    )
    for spec in list_run_specs(declaration, root):
        entry = ledger.run_entry(spec)
        if not ledger.is_finished(spec):
            state = entry.get("state", "not begun")
            evidence.absent[spec.name] = (
                "interrupted" if state == "running" and not is_campaign_running(root) else state
            )
        elif reasons := [*entry["differences"], *_find_altered_files(spec, entry)]:
            evidence.refused[spec.name] = reasons
        else:
            run = _read_finished_run(spec, entry, declaration.budget)
            if reasons := list(_find_inconsistencies(run, evidence)):
                evidence.refused[spec.name] = reasons
            else:
                evidence.runs[spec.condition, spec.seed] = run
    return evidence


def _find_altered_files(spec: RunSpec, entry: Mapping[str, Any]) -> Iterator[str]:
    """Return the names of files that differ from those recorded in the ledger."""
    for step, sha256 in entry["held_out_sha256"].items():
        path = spec.run_folder.evaluation_file(int(step))
        if not path.is_file() or file_sha256(path) != sha256:
            yield f"{path.relative_to(spec.folder).as_posix()} is not the file that the ledger has recorded"


def _read_finished_run(spec: RunSpec, entry: Mapping[str, Any], budget: DeclaredBudget | None) -> FinishedRun:
    evaluations = {
        int(step): read_evaluation_file(spec.run_folder.evaluation_file(int(step))) for step in entry["metrics"]
    }
    steps = locate_evaluations({step: content.get("tokens") for step, content in evaluations.items()}, budget)
    results = {place: evaluations[step] for place, step in steps.items()}
    tokens = {place: result["tokens"] for place, result in results.items() if "tokens" in result}
    last_evaluation = evaluations[max(evaluations)]
    return FinishedRun(
        spec.condition,
        spec.seed,
        (last_evaluation["questions_sha256"], tuple(last_evaluation["numbers"])),
        {place: np.asarray(result["right"], dtype=np.float64) for place, result in results.items()},
        {place: result["metrics"] for place, result in results.items()},
        entry,
        steps,
        tokens if len(tokens) == len(results) else {},
    )


def _find_inconsistencies(run: FinishedRun, evidence: CampaignEvidence) -> Iterator[str]:
    """Yield the contradictions of a run's verdicts to its metrics, and of its questions to those of the other seeds."""
    for place, right in run.right.items():
        step = run.steps[place]
        if set(run.metrics[place]) != set(run.entry["metrics"][str(step)]):
            yield f"step {step}: its metrics are not those that the ledger has recorded"
            continue
        k = evidence.pass_k(run.condition)
        pass_k = pass_at_k(right.shape[1], right.sum(1), k).mean()
        for name, value in {"val/pass_at_1": right.mean(), "val/pass_at_k": pass_k}.items():
            metric = run.metrics[place][name]
            if not abs(metric - value) <= 1e-6:  # also where it is not a number
                yield f"step {step}: {name} is {metric:.6f} in the metrics, {value:.6f} in the verdicts"
    for first_run in evidence.runs_of(run.condition)[:1]:
        has_same_places = [*first_run.right] == [*run.right]
        has_same_questions = evidence.has_own_questions or first_run.questions == run.questions
        if not (has_same_places and has_same_questions):
            yield f"its questions or evaluations are not those of seed {first_run.seed}"
