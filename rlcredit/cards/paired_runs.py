"""Paired training runs of conditions, each with its own learning rate, reused by later cards."""

import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rlcredit.base.files import write_atomically
from rlcredit.base.messages import format_duration, print_message
from rlcredit.campaign.campaign_record import discard_refused_campaign, lock_campaign
from rlcredit.campaign.declaration import CampaignDeclaration
from rlcredit.campaign.execution import run_campaign
from rlcredit.campaign.launchers.local_launcher import open_local_machine
from rlcredit.campaign.metric_definition import MetricDefinition, define_held_out_metric, list_metric_differences
from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.campaign.run_spec import render_settings
from rlcredit.cards.budget import CardBudget
from rlcredit.cards.cache_key import fingerprint_configs, hash_json_content
from rlcredit.cards.training_outcome import EFFECT, PRIMARY, TrainingOutcome
from rlcredit.cli.application import read_expanded_config
from rlcredit.report.condition_comparison import compare_conditions, measure_curve_area
from rlcredit.report.evidence import CampaignEvidence, read_campaign_evidence
from rlcredit.statistics.grid_choice import choose_grid_value

RATE = "model.optimizer.init_args.lr"
"""The setting that is tuned."""

COMMON = {
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

    """

    name: str
    files: tuple[str, ...]
    rate: float


def run_paired_training(
    condition: TrainingCondition,
    baseline: TrainingCondition,
    budget: CardBudget,
    root: Path,
    slots: int | None,
    threads: int | None,
) -> TrainingOutcome:
    """Execute the missing runs of two conditions, each with its own learning rate, and compare them.

    The runs of a condition are a campaign of its own, named by all that they depend on: another card finds them again.

    Args:
        condition: Condition that is judged.
        baseline: Condition with which it is compared.
        budget: Budget that says how much is run.
        root: Folder of all training conditions.
        slots: Runs at a time; all cores if None.
        threads: CPU threads per run.

    Raises:
        ValueError: a run failed, or the two cannot be compared.

    """
    both = dict.fromkeys((baseline, condition))
    rates = {each.name: _tune_learning_rate(each, budget, root, slots, threads) for each in both}
    found = {
        each.name: _collect_run_evidence(each, budget, budget.seeds, rates[each.name], root, slots, threads)
        for each in both
    }
    joined = _join_run_evidence(found, baseline.name, condition.name)
    compared = compare_conditions(joined)[0]
    return TrainingOutcome(
        compared,
        joined.runs_of(condition.name),
        joined.runs_of(baseline.name),
        rates[condition.name],
        rates[baseline.name],
    )


def refuse_unlike_evaluation(
    condition: TrainingCondition, baseline: TrainingCondition, budget: CardBudget, root: Path
) -> None:
    """Refuse two conditions whose evaluations differ.

    Raises:
        ValueError: with what differs.

    """

    def metric(each: TrainingCondition) -> MetricDefinition:
        declared = _draft_condition_runs(each, budget, budget.seeds, each.rate, root)
        return define_held_out_metric(
            declared, resolve_condition([f"--config={file}" for file in _list_run_configs(declared)]).leaves
        )

    if reasons := list_metric_differences(metric(condition), metric(baseline), (condition.name, baseline.name)):
        raise ValueError(f"{condition.name} and {baseline.name} are not evaluated alike: {'; '.join(reasons)}.")


def _tune_learning_rate(
    condition: TrainingCondition, budget: CardBudget, root: Path, slots: int | None, threads: int | None
) -> float:
    """Return the learning rate of the grid whose tuning runs end best; the configured one without a grid."""
    if not budget.factors:
        return condition.rate

    ended, areas = {}, {}
    for factor in budget.factors:
        rate = condition.rate * factor
        evidence = _collect_run_evidence(condition, budget, budget.tuning_seeds, rate, root, slots, threads)
        found = evidence.runs_of(condition.name)
        ended[factor] = [run.final_value(PRIMARY) for run in found]
        areas[factor] = [measure_curve_area(run, PRIMARY) for run in found]
    for sentence in choose_grid_value(ended).describe_doubts(f"learning rates of {condition.name}"):
        print_message(f"note       {sentence}")
    return condition.rate * max(budget.factors, key=lambda factor: (np.mean(ended[factor]), np.mean(areas[factor])))


def _collect_run_evidence(
    condition: TrainingCondition,
    budget: CardBudget,
    seeds: Sequence[int],
    rate: float,
    root: Path,
    slots: int | None,
    threads: int | None,
) -> CampaignEvidence:
    """Execute the missing runs of a condition with one learning rate, and read their results."""
    declaration = _declare_condition_runs(condition, budget, seeds, rate, root)
    folder = root / declaration.name
    folder.mkdir(exist_ok=True)
    said = folder / "said.txt"
    before = said.stat().st_size if said.is_file() else 0
    with (
        discard_refused_campaign(folder),
        open_local_machine(folder, None, slots) as share,
        lock_campaign(folder),
        said.open("a", encoding="utf-8") as log,
    ):
        print_message(f"learning   {condition.name}, {len(seeds)} runs of {budget.steps} steps, learning rate {rate:g}")
        screen, began = sys.stdout, time.perf_counter()
        with contextlib.redirect_stdout(log):
            status = run_campaign(
                declaration, folder, render_settings(declaration.settings), share, threads, measure=False, screen=screen
            )
    if status:
        now = said.read_bytes()[before:].decode()
        why = [line for line in now.splitlines() if line.startswith("    ")]
        raise ValueError(
            f"runs of {condition.name} failed{': ' + why[-1].strip() if why else ''}. The whole output is in "
            f"{said}; the same command tries again."
        )
    evidence = read_campaign_evidence(folder)
    ended = np.mean([run.final_value(PRIMARY) for run in evidence.runs_of(condition.name)])
    spent = format_duration(time.perf_counter() - began)
    print_message(f"learnt     {condition.name}: {ended:.3f} of the held-out questions right, on average ({spent})")
    return evidence


def _declare_condition_runs(
    condition: TrainingCondition, budget: CardBudget, seeds: Sequence[int], rate: float, root: Path
) -> CampaignDeclaration:
    """Return the declaration of a condition's runs, under a name that identifies everything they depend on."""
    declared = _draft_condition_runs(condition, budget, seeds, rate, root)
    contents = [read_expanded_config(Path(file)) for file in _list_run_configs(declared)]
    told = hash_json_content([{**declared.to_json(), "configs": [], "conditions": {}}, fingerprint_configs(contents)])
    return replace(declared, name=f"{condition.name}-{told[:10]}")


def _list_run_configs(declared: CampaignDeclaration) -> tuple[str, ...]:
    """Return the configuration files of a condition's runs; later ones win."""
    return (*declared.configs, *declared.conditions[declared.baseline])


def _draft_condition_runs(
    condition: TrainingCondition, budget: CardBudget, seeds: Sequence[int], rate: float, root: Path
) -> CampaignDeclaration:
    """Return the declaration of a condition's runs under the name of the condition.

    What the budget says of batches and evaluations stands before the condition, which may say otherwise.
    """
    common = root / f"{budget.name}.yaml"
    write_atomically(common, render_settings(COMMON | {"data.init_args.validation_size": budget.questions}))
    files = (*condition.files[:-1], str(common), condition.files[-1])
    return CampaignDeclaration(
        name=condition.name,
        configs=files[:-1],
        conditions={condition.name: files[-1:]},
        baseline=condition.name,
        seeds=tuple(seeds),
        steps=budget.steps,
        primary=PRIMARY,
        effect=EFFECT,
        exploratory=True,
        settings={
            RATE: rate,
            "trainer.val_check_interval": budget.steps // budget.evaluations,
            "checkpoint.every_n_train_steps": budget.steps,
        },
    )


def _join_run_evidence(found: Mapping[str, CampaignEvidence], baseline: str, condition: str) -> CampaignEvidence:
    """Return the runs of two conditions as if they belonged to one campaign."""
    base, own = found[baseline], found[condition]
    conditions = {**base.declaration.conditions, **own.declaration.conditions}
    return CampaignEvidence(
        replace(base.declaration, name=condition, conditions=conditions, baseline=baseline),
        base.ledger,
        {**base.runs, **own.runs},
        {**base.refused, **own.refused},
        {**base.absent, **own.absent},
        {**base.measures, **own.measures},
    )
