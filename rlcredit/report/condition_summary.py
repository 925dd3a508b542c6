"""Summaries of single conditions: the quality of their policies, its uncertainty, and the sources of its variance."""

import dataclasses

import numpy as np

from rlcredit.report.condition_comparison import FEWEST_PAIRS
from rlcredit.report.evidence import CampaignEvidence, FinishedRun
from rlcredit.report.run_measures import measure_curve_area
from rlcredit.statistics.collapse import clopper_pearson_limit, collapsed_run_mask
from rlcredit.statistics.intervals import Interval
from rlcredit.statistics.new_question_interval import new_question_interval
from rlcredit.statistics.run_aggregates import interquartile_mean
from rlcredit.statistics.t_test import t_test
from rlcredit.statistics.variance_components import VarianceComponents, variance_components

_VARIANCE_FACTORS = ("step", "prompt", "arm", "run")
"""Names of the factors in the files of a report; an arm is a condition."""


def decompose_variance(evidence: CampaignEvidence) -> dict[str, VarianceComponents]:
    """Split the variance of a question's share of right samples, over all steps and after the last one.

    Runs are nested in conditions, questions are common to all. Only seeds that are finished in every condition count,
    so that the table is balanced; nothing is returned for fewer than two of them, or if conditions are measured
    otherwise.
    """
    declaration = evidence.declaration
    seeds = [
        seed for seed in declaration.seeds if all((name, seed) in evidence.runs for name in declaration.conditions)
    ]
    grid = [[evidence.runs[name, seed] for seed in seeds] for name in declaration.conditions]
    baseline = declaration.baseline
    differ = any(evidence.list_metric_differences(name, baseline) for name in declaration.conditions)
    if len(seeds) < 2 or differ or len({run.question_key for runs in grid for run in runs}) > 1:
        return {}
    steps = list(grid[0][0].right)
    table = np.stack([[[run.right[step].mean(-1) for run in runs] for runs in grid] for step in steps])
    tables = {"all evaluations": table, f"after {declaration.end_label}": table[-1:]}
    return {name: _decompose_table(part) for name, part in tables.items()}


def _decompose_table(table: np.ndarray) -> VarianceComponents:
    """Decompose an array of shape ``(steps, conditions, runs, questions)``; a factor with one level is left out."""
    step, condition, run, prompt = np.indices(table.shape).reshape(4, -1)
    labels = dict(zip(_VARIANCE_FACTORS, (step, prompt, condition, condition * table.shape[2] + run), strict=True))
    levels = {"step": table.shape[0], "arm": table.shape[1]}
    factors = {name: codes for name, codes in labels.items() if levels.get(name, 2) > 1}
    return variance_components(table.ravel(), factors)


@dataclasses.dataclass(frozen=True)
class MeanEstimate:
    """A mean over runs with its interval.

    Args:
        mean: Mean over runs.
        interval: None for a single run, and where runs do not differ but all samples are neither right nor wrong.

    """

    mean: float
    interval: Interval | None


@dataclasses.dataclass(frozen=True)
class ConditionSummary:
    """Summary of a condition after the last step.

    Args:
        condition: Name of the condition.
        runs: Number of runs reported.
        collapsed: Number of runs that ended far below the others.
        pass_at_1: Mean pass@1 for new seeds and questions, or for new seeds only below six runs.
        pass_at_k: Mean pass@k for new seeds and questions, or for new seeds only below six runs.
        iqm: Interquartile mean of pass@1 over runs.
        deviation: Standard deviation of pass@1 between runs, None for a single one.
        area: Area under the learning curve of the primary metric, for new seeds.

    """

    condition: str
    runs: int
    collapsed: int
    pass_at_1: MeanEstimate
    pass_at_k: MeanEstimate
    iqm: float
    deviation: float | None
    area: MeanEstimate


def summarise_conditions(evidence: CampaignEvidence) -> list[ConditionSummary]:
    """Summarise every condition that has runs."""
    runs_by_condition = {condition: evidence.runs_of(condition) for condition in evidence.declaration.conditions}
    return [_summarise_condition(evidence, condition, runs) for condition, runs in runs_by_condition.items() if runs]


def _summarise_condition(evidence: CampaignEvidence, condition: str, runs: list[FinishedRun]) -> ConditionSummary:
    right = np.array([run.metrics[evidence.declaration.end]["val/pass_at_1"] for run in runs])
    if not evidence.has_own_questions:
        right = evidence.question_outcomes(runs, "val/pass_at_1").mean((1, 2))
    return ConditionSummary(
        condition,
        len(runs),
        int(collapsed_run_mask(right).sum()),
        _estimate_over_questions(evidence, runs, "val/pass_at_1"),
        _estimate_over_questions(evidence, runs, "val/pass_at_k"),
        interquartile_mean(right),
        float(right.std(ddof=1)) if len(runs) > 1 else None,
        estimate_over_runs([measure_curve_area(run, evidence.declaration.primary) for run in runs]),
    )


def _estimate_over_questions(evidence: CampaignEvidence, runs: list[FinishedRun], metric: str) -> MeanEstimate:
    if evidence.has_own_questions:
        return estimate_over_runs([run.metrics[evidence.declaration.end][metric] for run in runs])
    outcomes = evidence.question_outcomes(runs, metric)
    if outcomes.min() == outcomes.max():
        return MeanEstimate(float(outcomes.mean()), unanimous_interval(float(outcomes.max()), outcomes.shape[1]))
    if min(outcomes.shape[:2]) < FEWEST_PAIRS:
        return estimate_over_runs(outcomes.mean((1, 2)).tolist())
    return MeanEstimate(float(outcomes.mean()), new_question_interval(outcomes))


def unanimous_interval(share: float, questions: int) -> Interval:
    """Return Clopper and Pearson's interval where every sample of every question is right, or every one is wrong.

    Samples of a question, and runs, are taken for one: how much they would add is not known where none differ.

    Example:
        >>> unanimous_interval(1.0, questions=512)
        Interval(low=0.992..., high=1.0, level=0.95)

    """
    limit = clopper_pearson_limit(0, questions, 0.975)
    return Interval(1 - limit, 1.0, 0.95) if share else Interval(0.0, limit, 0.95)


def estimate_over_runs(values: list[float]) -> MeanEstimate:
    """Return the mean of one number per run with Student's interval.

    Example:
        >>> estimate_over_runs([0.5]), round(estimate_over_runs([0.5, 0.7]).mean, 2)
        (MeanEstimate(mean=0.5, interval=None), 0.6)

    """
    mean, runs = float(np.mean(values)), len(values)
    if np.ptp(values) == 0:
        return MeanEstimate(mean, None)
    return MeanEstimate(mean, t_test(mean, float(np.std(values, ddof=1)) / runs**0.5, runs - 1).interval)
