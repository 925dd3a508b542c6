"""The plan of a campaign in words: what it costs, and which effects it can detect."""

import heapq
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from rlcredit.base.budget_kinds import sum_budget_counts
from rlcredit.base.messages import format_duration
from rlcredit.campaign.declaration import ALPHA, CampaignDeclaration
from rlcredit.campaign.launchers.run_launcher import RunLauncher
from rlcredit.campaign.resolved_condition import ResolvedCondition
from rlcredit.campaign.run_spec import list_run_specs
from rlcredit.campaign.step_timing import Seconds
from rlcredit.statistics.power import detectable_effect, seeds_needed
from rlcredit.statistics.sign_flip import fewest_sign_flip_pairs, smallest_sign_flip_p

_TARGET_POWER = 0.8


def describe_campaign(
    declaration: CampaignDeclaration,
    resolution: ResolvedCondition,
    launcher: RunLauncher,
    timings: Mapping[str, Seconds],
) -> Iterator[str]:
    """Yield the lines of the plan.

    Args:
        declaration: Declaration of the campaign.
        resolution: Resolved configuration of the baseline.
        launcher: Launcher that starts the runs.
        timings: Measured times by condition; the plan says nothing of time unless all are there.

    """
    slots = launcher.slots
    conditions, seeds = len(declaration.conditions), len(declaration.seeds)
    runs, module, task = conditions * seeds, resolution.module, resolution.task
    training_samples = "training completions as the budget allows"
    if declaration.steps:
        rollouts = declaration.steps // module.updates_per_rollout
        completions = runs * rollouts * task.prompts_per_step * module.sampling.completions
        limit = f" kept of up to {completions * module.rounds:,}" if module.rounds > 1 else ""
        training_samples = f"{completions:,} training completions{limit}"
    evaluations = len(list_evaluations(declaration, resolution))
    answers = [question_set.count_answers(module.validation.completions) for question_set in task.held_out_sets]
    counts = [number for number in answers if number is not None]
    held_out = f"{runs * evaluations * sum(counts):,}" if len(counts) == len(answers) else "all questions'"
    if any(question_set.size and question_set.task.held_out_size is None for question_set in task.held_out_sets):
        held_out = f"at most {held_out}"
    length = f"{declaration.end:,} {declaration.budget.unit}" if declaration.budget else f"{declaration.end} steps"
    yield f"campaign   {declaration.name}, declaration {declaration.sha256[:12]}"
    yield f"runs       {conditions} conditions x {seeds} seeds = {runs} runs of {length}, {slots} at a time"
    yield f"where      {launcher.description}"
    yield f"samples    {training_samples}, {held_out} held out ({evaluations} evaluations a run)"
    yield from (f"time       {sentence}" for sentence in describe_durations(declaration, evaluations, slots, timings))
    quantity = declaration.summary_label.format(declaration.primary)
    yield f"primary    {quantity} {declaration.span_label}, effect {declaration.effect:g}"
    for name, family in declaration.comparison_families.items():
        question = f"{name}: " if name else ""
        yield f"compares   {question}{', '.join(family.conditions)} against {family.baseline}"
    yield from (f"pairs      {sentence}" for sentence in describe_power(declaration))


def describe_durations(
    declaration: CampaignDeclaration, evaluations: int, slots: int, timings: Mapping[str, Seconds]
) -> Iterator[str]:
    """Yield the time that all runs take in the available slots, and a table of that of one run of each kind."""
    if len(timings) < len(declaration.conditions):
        return
    busy, unique_timings = [0.0] * slots, list[Seconds]()
    steps = {name: estimate_steps(declaration, timing) for name, timing in timings.items()}
    run = {
        name: timing["start"] + steps[name] * timing["step"] + evaluations * timing["validation"]
        for name, timing in timings.items()
    }
    for spec in list_run_specs(declaration, Path()):
        heapq.heapreplace(busy, busy[0] + run[spec.condition])
    total = format_duration(max(busy))
    yield f"about {total}, if completions keep their length (measured in short runs, one at a time)"
    rows = [("run of", "takes", *(["steps, about"] if declaration.budget else []), "a step", "an evaluation")]
    for name, timing in timings.items():
        if timing not in unique_timings:
            unique_timings.append(timing)
            about = [str(steps[name])] if declaration.budget else []
            cells = (f"{timing['step']:.2f} s", format_duration(timing["validation"]))
            rows.append((name, format_duration(run[name]), *about, *cells))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def estimate_steps(declaration: CampaignDeclaration, timing: Seconds) -> int:
    """Return the number of steps of a run, estimated from the tokens of a short one if a budget ends it."""
    if declaration.steps:
        return declaration.steps
    assert declaration.budget is not None
    return math.ceil(declaration.end / max(sum_budget_counts(declaration.budget.key, timing), 1.0))


def list_evaluations(declaration: CampaignDeclaration, resolution: ResolvedCondition) -> list[int]:
    """Return the steps after which a run is evaluated, or the tokens of its budget.

    Raises:
        ValueError: the last step is not among them, or there are no held-out questions.

    """
    if declaration.budget is None:
        return list_evaluation_steps(resolution)
    _refuse_missing_questions(resolution)
    return declaration.budget.marks


def list_evaluation_steps(resolution: ResolvedCondition) -> list[int]:
    """Return the steps after which a run is evaluated; the last one must be among them.

    Raises:
        ValueError: it is not.

    """
    _refuse_missing_questions(resolution)
    steps, interval = resolution.leaves["trainer"]["max_steps"], resolution.leaves["trainer"]["val_check_interval"]
    if not interval or steps % interval:
        raise ValueError(
            f"steps is {steps}, but held-out questions are asked every {interval} steps: the last interval would be "
            f"shorter. Add settings: {{trainer.val_check_interval: {math.gcd(steps, interval or steps)}}}."
        )
    return list(range(0, steps + 1, interval))


def _refuse_missing_questions(resolution: ResolvedCondition) -> None:
    if resolution.task.validation_size == 0:
        raise ValueError(
            "data.init_args.validation_size is 0, but a campaign compares answers to the task's own held-out "
            "questions. Set it above 0."
        )


def describe_power(declaration: CampaignDeclaration) -> Iterator[str]:
    """Yield the effects that this number of pairs can detect."""
    seeds, level = len(declaration.seeds), _holm_first_level(declaration)
    yield f"the smallest p of {seeds} pairs is {smallest_sign_flip_p(seeds):.3g} (sign flip, two-sided)"
    if seeds < fewest_sign_flip_pairs(ALPHA):
        return
    smallest = detectable_effect(seeds, _TARGET_POWER, conditions=1, alpha=level)
    sensitivity = f"{seeds} pairs find a difference of {smallest:.3g} standard deviations with power {_TARGET_POWER:g}"
    if declaration.deviation:
        yield f"{sensitivity}, which is {smallest * declaration.deviation:.3g} of {declaration.primary}"
    else:
        yield f"{sensitivity}: the effect, if that deviation is at most {declaration.effect / smallest:.3g}"


def explain_seed_shortfall(declaration: CampaignDeclaration) -> str | None:
    """Return the number of seeds needed, in words, if these cannot detect the effect; None if they can."""
    if not declaration.comparison_families:
        return None
    seeds = len(declaration.seeds)
    seed_count, reason = fewest_sign_flip_pairs(ALPHA), f"p <= {ALPHA:g}, which no fewer pairs can reach"
    if declaration.deviation:
        seeds_for_power = seeds_needed(
            declaration.effect / declaration.deviation,
            _TARGET_POWER,
            conditions=1,
            alpha=_holm_first_level(declaration),
        )
        if seeds_for_power > seed_count:
            seed_count, reason = seeds_for_power, f"an effect of {declaration.effect:g} with power {_TARGET_POWER:g}"
    if seeds >= seed_count:
        return None
    advice = "" if declaration.exploratory else " Declare more seeds, or `exploratory: true` if no verdict is expected."
    return f"{seeds} seeds cannot reach a verdict; {seed_count} are needed for {reason}.{advice}"


def _holm_first_level(declaration: CampaignDeclaration) -> float:
    """Return the significance level of the first comparison in Holm's procedure over the whole campaign."""
    return ALPHA / max(1, sum(len(family.conditions) for family in declaration.comparison_families.values()))
