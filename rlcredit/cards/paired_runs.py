"""Paired training runs of conditions, each with its own learning rate, reused by later cards."""

import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rlcredit.base.files import write_atomically
from rlcredit.base.messages import format_duration, print_message
from rlcredit.campaign.campaign_record import discard_refused_campaign, lock_campaign
from rlcredit.campaign.declaration import CampaignDeclaration
from rlcredit.campaign.execution import run_campaign
from rlcredit.campaign.launchers.local_launcher import open_local_machine
from rlcredit.campaign.metric_definition import (
    MetricDefinition,
    define_held_out_metric,
    describe_outcomes,
    list_metric_differences,
)
from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.campaign.run_spec import render_settings
from rlcredit.cards.budget import CardBudget
from rlcredit.cards.cache_key import fingerprint_configs, hash_json_content
from rlcredit.cards.training_outcome import CARD_MARGIN, PRIMARY_METRIC, TrainingOutcome
from rlcredit.cli.application import read_expanded_config
from rlcredit.report.condition_comparison import compare_conditions
from rlcredit.report.evidence import CampaignEvidence, read_campaign_evidence
from rlcredit.report.run_measures import measure_curve_area
from rlcredit.statistics.grid_choice import choose_grid_value

RATE_SETTING = "model.optimizer.init_args.lr"
"""The setting that is tuned."""

COMMON_SETTINGS = {
    "data.init_args.prompts_per_step": 4,
    "data.init_args.validation_batch": 256,
    "model.validation.completions": 2,
    "model.pass_k": 2,
}
"""Settings of all runs, unless a condition has its own."""


@dataclass(frozen=True)
class TrainingCondition:
    """A condition that is trained.

    Args:
        name: Name of the condition.
        files: Configuration files of its runs; later ones win.
        rate: Learning rate as configured.
        updates: Updates by which its runs use a rollout.

    """

    name: str
    files: tuple[str, ...]
    rate: float
    updates: int = 1


@dataclass(frozen=True)
class PairedRuns:
    """Runs of conditions that are paired by seed; each condition has its own learning rate.

    The runs of a condition are a campaign of its own, named by all that they depend on: another card finds them again.

    Args:
        budget: Budget that says how much is run.
        root: Folder of all training conditions.
        slots: Runs at a time; all cores if None.
        threads: CPU threads per run.

    """

    budget: CardBudget
    root: Path
    slots: int | None = None
    threads: int | None = None

    def compare(self, condition: TrainingCondition, baseline: TrainingCondition) -> TrainingOutcome:
        """Execute the missing runs of a condition and its baseline, and compare them.

        Raises:
            ValueError: a run failed, or the two cannot be compared.

        """
        rates = {arm.name: self._tune_learning_rate(arm) for arm in dict.fromkeys((baseline, condition))}
        evidence = {
            arm.name: self._collect_evidence(arm, self.budget.seeds, rates[arm.name])
            for arm in dict.fromkeys((baseline, condition))
        }
        joint = _join_run_evidence(evidence[baseline.name], evidence[condition.name])
        return TrainingOutcome(
            compare_conditions(joint)[0],
            joint.runs_of(condition.name),
            joint.runs_of(baseline.name),
            rates[condition.name],
            rates[baseline.name],
        )

    def refuse_unlike_evaluation(self, condition: TrainingCondition, baseline: TrainingCondition) -> None:
        """Refuse two conditions whose evaluations differ.

        Raises:
            ValueError: with what differs.

        """
        names = (condition.name, baseline.name)
        if reasons := list_metric_differences(self._define_metric(condition), self._define_metric(baseline), names):
            raise ValueError(f"{condition.name} and {baseline.name} are not evaluated alike: {'; '.join(reasons)}.")

    def _define_metric(self, condition: TrainingCondition) -> MetricDefinition:
        declaration = self._draft_declaration(condition, self.budget.seeds, condition.rate)
        configs = [f"--config={file}" for file in _list_run_configs(declaration)]
        return define_held_out_metric(declaration, resolve_condition(configs).leaves)

    def _tune_learning_rate(self, condition: TrainingCondition) -> float:
        """Return the learning rate of the grid whose tuning runs end best; the configured one without a grid."""
        if not self.budget.factors:
            return condition.rate

        ends, areas = {}, {}
        for factor in self.budget.factors:
            evidence = self._collect_evidence(condition, self.budget.tuning_seeds, condition.rate * factor)
            runs = evidence.runs_of(condition.name)
            ends[factor] = [run.final_value(PRIMARY_METRIC) for run in runs]
            areas[factor] = [measure_curve_area(run, PRIMARY_METRIC) for run in runs]
        for sentence in choose_grid_value(ends).describe_doubts(f"learning rates of {condition.name}"):
            print_message(f"note       {sentence}")
        return condition.rate * max(
            self.budget.factors, key=lambda factor: (np.mean(ends[factor]), np.mean(areas[factor]))
        )

    def _collect_evidence(self, condition: TrainingCondition, seeds: Sequence[int], rate: float) -> CampaignEvidence:
        """Execute the missing runs of a condition with one learning rate, and read their results."""
        declaration = self.declare_runs(condition, seeds, rate)
        folder = self.root / declaration.name
        folder.mkdir(exist_ok=True)
        transcript = folder / "said.txt"
        start = transcript.stat().st_size if transcript.is_file() else 0
        steps = self.budget.steps
        with (
            discard_refused_campaign(folder),
            open_local_machine(folder, None, self.slots) as share,
            lock_campaign(folder),
            transcript.open("a", encoding="utf-8") as log,
        ):
            print_message(f"learning   {condition.name}, {len(seeds)} runs of {steps} steps, learning rate {rate:g}")
            screen, clock = sys.stdout, time.perf_counter()
            settings = render_settings(declaration.settings)
            with contextlib.redirect_stdout(log):
                status = run_campaign(declaration, folder, settings, share, self.threads, measure=False, screen=screen)
        if status:
            lines = transcript.read_bytes()[start:].decode().splitlines()
            reasons = [line for line in lines if line.startswith("    ")]
            raise ValueError(
                f"runs of {condition.name} failed{': ' + reasons[-1].strip() if reasons else ''}. The whole output is "
                f"in {transcript}; the same command tries again."
            )
        evidence = _count_rollouts(read_campaign_evidence(folder), condition.updates)
        end = np.mean([run.final_value(PRIMARY_METRIC) for run in evidence.runs_of(condition.name)])
        duration = format_duration(time.perf_counter() - clock)
        print_message(
            f"learnt     {condition.name}: {end:.3f} of the held-out questions right, on average ({duration})"
        )
        return evidence

    def declare_runs(self, condition: TrainingCondition, seeds: Sequence[int], rate: float) -> CampaignDeclaration:
        """Return the declaration of a condition's runs, under a name that identifies everything they depend on."""
        declaration = self._draft_declaration(condition, seeds, rate)
        contents = [read_expanded_config(Path(file)) for file in _list_run_configs(declaration)]
        plain = {**declaration.to_json(), "configs": [], "conditions": {}}
        digest = hash_json_content([plain, fingerprint_configs(contents)])
        return replace(declaration, name=f"{condition.name}-{digest[:10]}")

    def _draft_declaration(
        self, condition: TrainingCondition, seeds: Sequence[int], rate: float
    ) -> CampaignDeclaration:
        """Return the declaration of a condition's runs under the name of the condition.

        What the budget says of batches and evaluations stands before the condition, which may say otherwise.
        """
        common = self.root / f"{self.budget.name}.yaml"
        write_atomically(
            common, render_settings(COMMON_SETTINGS | {"data.init_args.validation_size": self.budget.questions})
        )
        *files, condition_file = condition.files
        return CampaignDeclaration(
            name=condition.name,
            configs=(*files, str(common)),
            conditions={condition.name: (condition_file,)},
            baseline=condition.name,
            seeds=tuple(seeds),
            steps=self.budget.steps * condition.updates,
            primary=PRIMARY_METRIC,
            effect=CARD_MARGIN,
            exploratory=True,
            settings={
                RATE_SETTING: rate,
                "trainer.val_check_interval": self.budget.steps // self.budget.evaluations * condition.updates,
                "checkpoint.every_n_train_steps": self.budget.steps * condition.updates,
            },
        )


def _list_run_configs(declaration: CampaignDeclaration) -> tuple[str, ...]:
    """Return the configuration files of a condition's runs; later ones win."""
    return (*declaration.configs, *declaration.conditions[declaration.baseline])


def _count_rollouts(evidence: CampaignEvidence, updates: int) -> CampaignEvidence:
    """Return evidence in which a step is a rollout, however many updates use it: runs are compared at equal ones."""

    def rescale(places: Mapping[int, Any]) -> dict[int, Any]:
        return {step // updates: value for step, value in places.items()}

    runs = {
        key: replace(run, right=rescale(run.right), metrics=rescale(run.metrics), tokens=rescale(run.tokens))
        for key, run in evidence.runs.items()
    }
    declaration = replace(evidence.declaration, steps=evidence.declaration.end // updates)
    measures = {
        name: replace(measure, over=describe_outcomes(declaration)) for name, measure in evidence.measures.items()
    }
    return replace(evidence, declaration=declaration, runs=runs, measures=measures)


def _join_run_evidence(base: CampaignEvidence, evidence: CampaignEvidence) -> CampaignEvidence:
    """Return the runs of a baseline and of another condition as if they belonged to one campaign."""
    conditions = {**base.declaration.conditions, **evidence.declaration.conditions}
    declaration = replace(base.declaration, name=evidence.declaration.baseline, conditions=conditions)
    names = ("runs", "refused", "absent", "measures")
    return replace(
        base, declaration=declaration, **{name: {**getattr(base, name), **getattr(evidence, name)} for name in names}
    )
