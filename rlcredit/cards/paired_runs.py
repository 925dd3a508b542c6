"""Conditions that learn: paired runs, each condition with its own learning rate, found again by every other card."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rlcredit.base.files import write_atomically
from rlcredit.base.messages import print_message
from rlcredit.campaign.campaign_command import LAUNCHERS
from rlcredit.campaign.campaign_record import discard_refused_campaign, lock_campaign
from rlcredit.campaign.declaration import CampaignDeclaration
from rlcredit.campaign.execution import run_campaign
from rlcredit.campaign.metric_definition import MetricDefinition, define_held_out_metric, list_metric_differences
from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.campaign.run_spec import render_settings
from rlcredit.cards.budget import CardBudget
from rlcredit.cards.cache_key import fingerprint_configs, hash_json_content
from rlcredit.cards.training_outcome import EFFECT, PRIMARY, TrainingOutcome
from rlcredit.config import strict_yaml
from rlcredit.report.condition_comparison import compare_conditions, measure_curve_area
from rlcredit.report.evidence import CampaignEvidence, FinishedRun, read_campaign_evidence

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
    """A condition that learns.

    Args:
        name: Name of the condition.
        files: Configuration files of its runs; later ones win.
        rate: Learning rate as configured.

    """

    name: str
    files: tuple[str, ...]
    rate: float


def run_paired_training(
    arm: TrainingCondition,
    baseline: TrainingCondition,
    budget: CardBudget,
    root: Path,
    slots: int | None,
    threads: int | None,
) -> TrainingOutcome:
    """Run what is missing of two arms, each with its own learning rate, and compare them.

    The runs of an arm are a campaign of its own, named by all that they depend on: another card finds them again.

    Args:
        arm: Condition that is judged.
        baseline: Condition with which it is compared.
        budget: Budget that says how much is run.
        root: Folder of all training conditions.
        slots: Runs at a time; all cores if None.
        threads: CPU threads per run.

    Raises:
        ValueError: a run failed, or the two cannot be compared.

    """
    rates = {
        each.name: _tune_learning_rate(each, budget, root, slots, threads) for each in dict.fromkeys((baseline, arm))
    }
    found = {
        each.name: _collect_run_evidence(each, budget, budget.seeds, rates[each.name], root, slots, threads)
        for each in dict.fromkeys((baseline, arm))
    }
    both = _join_run_evidence(found, baseline.name, arm.name)
    compared = compare_conditions(both)[0]
    return TrainingOutcome(
        compared, both.runs_of(arm.name), both.runs_of(baseline.name), rates[arm.name], rates[baseline.name]
    )


def refuse_unlike_evaluation(
    arm: TrainingCondition, baseline: TrainingCondition, budget: CardBudget, root: Path
) -> None:
    """Refuse two arms that are not evaluated alike.

    Raises:
        ValueError: with what differs.

    """

    def metric(each: TrainingCondition) -> MetricDefinition:
        declared = _draft_condition_runs(each, budget, budget.seeds, each.rate, root)
        return define_held_out_metric(
            declared, resolve_condition([f"--config={file}" for file in _list_run_configs(declared)]).leaves
        )

    if reasons := list_metric_differences(metric(arm), metric(baseline), (arm.name, baseline.name)):
        raise ValueError(f"{arm.name} and {baseline.name} are not evaluated alike: {'; '.join(reasons)}.")


def _tune_learning_rate(
    arm: TrainingCondition, budget: CardBudget, root: Path, slots: int | None, threads: int | None
) -> float:
    """Return the learning rate of the grid whose tuning runs end best; the one configured if there is no grid."""
    if not budget.factors:
        return arm.rate

    def ends(factor: float) -> tuple[float, float]:
        found = _collect_run_evidence(
            arm, budget, budget.tuning_seeds, arm.rate * factor, root, slots, threads
        ).runs_of(arm.name)
        ended, areas = ([of(run, PRIMARY) for run in found] for of in (FinishedRun.final_value, measure_curve_area))
        return float(np.mean(ended)), float(np.mean(areas))

    return arm.rate * max(budget.factors, key=ends)


def _collect_run_evidence(
    arm: TrainingCondition,
    budget: CardBudget,
    seeds: Sequence[int],
    rate: float,
    root: Path,
    slots: int | None,
    threads: int | None,
) -> CampaignEvidence:
    """Run what is missing of an arm with one learning rate, and read it."""
    declaration = _declare_condition_runs(arm, budget, seeds, rate, root)
    folder = root / declaration.name
    folder.mkdir(exist_ok=True)
    said = folder / "said.txt"
    before = said.stat().st_size if said.is_file() else 0
    with (
        discard_refused_campaign(folder),
        LAUNCHERS["local"](folder, None, slots) as share,
        lock_campaign(folder),
        said.open("a", encoding="utf-8") as log,
    ):
        print_message(f"learning   {arm.name}, {len(seeds)} runs of {budget.steps} steps, learning rate {rate:g}")
        with contextlib.redirect_stdout(log):
            status = run_campaign(
                declaration, folder, render_settings(declaration.settings), share, threads, measure=False
            )
    if status:
        now = said.read_bytes()[before:].decode()
        why = [line for line in now.splitlines() if line.startswith("    ")]
        raise ValueError(
            f"runs of {arm.name} failed{': ' + why[-1].strip() if why else ''}. All of it is in {said}; the same "
            "command tries again."
        )
    return read_campaign_evidence(folder)


def _declare_condition_runs(
    arm: TrainingCondition, budget: CardBudget, seeds: Sequence[int], rate: float, root: Path
) -> CampaignDeclaration:
    """Return the declaration of an arm, whose name tells it from every other."""
    declared = _draft_condition_runs(arm, budget, seeds, rate, root)
    contents = [strict_yaml.read_yaml(Path(file)) for file in _list_run_configs(declared)]
    told = hash_json_content([{**declared.to_json(), "configs": [], "conditions": {}}, fingerprint_configs(contents)])
    return replace(declared, name=f"{arm.name}-{told[:10]}")


def _list_run_configs(declared: CampaignDeclaration) -> tuple[str, ...]:
    """Return the configurations of the runs of an arm, the later ones win."""
    return (*declared.configs, *declared.conditions[declared.baseline])


def _draft_condition_runs(
    arm: TrainingCondition, budget: CardBudget, seeds: Sequence[int], rate: float, root: Path
) -> CampaignDeclaration:
    """Return the declaration of an arm under the name of its condition.

    What the budget says of batches and evaluations stands before the condition, which may say otherwise.
    """
    common = root / f"{budget.name}.yaml"
    write_atomically(common, render_settings(COMMON | {"data.init_args.validation_size": budget.questions}))
    files = (*arm.files[:-1], str(common), arm.files[-1])
    return CampaignDeclaration(
        name=arm.name,
        configs=files[:-1],
        conditions={arm.name: files[-1:]},
        baseline=arm.name,
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
    """Return the runs of two arms as those of one campaign."""
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
