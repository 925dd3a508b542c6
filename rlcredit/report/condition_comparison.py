"""Comparisons of a condition with a baseline: paired differences, corrected tests, and a conclusion in words."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlcredit.campaign.declaration import ALPHA, CampaignDeclaration, ReachedLevel
from rlcredit.report.evidence import CampaignEvidence, FinishedRun
from rlcredit.statistics.collapse import collapsed_run_mask
from rlcredit.statistics.hedges_g import StandardizedEffect, paired_hedges_g
from rlcredit.statistics.intervals import Interval
from rlcredit.statistics.new_question_interval import new_question_interval
from rlcredit.statistics.paired_comparison import (
    PairedConclusion,
    PairedTest,
    conclude_paired_family,
    sign_flip_paired_test,
    student_paired_test,
)
from rlcredit.statistics.run_aggregates import learning_curve_area, probability_of_improvement, steps_to_threshold
from rlcredit.statistics.sign_flip import fewest_sign_flip_pairs, sign_flip_p
from rlcredit.statistics.t_test import TTest, paired_t_test

Row = NDArray[np.float64]

FEWEST = fewest_sign_flip_pairs(ALPHA)
"""Pairs below which no test reaches the level, nor an interval for new questions the 95 % it is called."""


@dataclasses.dataclass(frozen=True)
class ConditionComparison:
    """Comparison of the paired runs of a condition and its baseline.

    Args:
        family: Question that the comparison belongs to.
        baseline: Name of the baseline.
        condition: Name of the condition compared.
        seeds: Seeds of the pairs, n of them.
        differences: Differences of what is compared of the primary metric, condition minus baseline, shape ``(n,)``.
        verdict: Conclusion in words; "open" or "not compared" with the reason where there is none.
        test: Paired t test, None below two pairs; where runs collapsed, its interval is no narrower than that of the
            sign-flip test.
        sign_flip: Two-sided p-value of the sign-flip test, None where there is no conclusion: an earlier look would be
            no test.
        p: P-value of the paired t, or of the sign flip where runs collapsed, adjusted by Holm for all that the campaign
            compares; None where there is no conclusion.
        p_equivalence: P-value of a difference beyond the margin, adjusted in the same way; one where runs collapsed,
            None where there is no conclusion.
        collapses: Number of runs of the condition that collapsed, and number of the baseline.
        general: Interval for new seeds and new questions alike, None below six pairs or questions.
        effect: Hedges' g of the differences, None below three pairs and where they do not spread.
        improves: How often a run of the condition beats one of the baseline.
        area: Difference of areas under the learning curve, None below two pairs.

    """

    family: str
    baseline: str
    condition: str
    seeds: tuple[int, ...]
    differences: Row
    verdict: str
    test: TTest | None = None
    sign_flip: float | None = None
    p: float | None = None
    p_equivalence: float | None = None
    collapses: tuple[int, int] = (0, 0)
    general: Interval | None = None
    effect: StandardizedEffect | None = None
    improves: float | None = None
    area: TTest | None = None

    @property
    def mean_difference(self) -> float | None:
        """Mean of the differences, None without pairs."""
        return float(self.differences.mean()) if self.seeds else None

    @property
    def interval(self) -> Interval | None:
        """Interval of the mean difference for these questions, None below two pairs."""
        return self.test.interval if self.test else None


def compare_conditions(evidence: CampaignEvidence) -> list[ConditionComparison]:
    """Compare the conditions that were declared to be compared, family by family.

    All are corrected together, whichever family they belong to. One that lacks pairs counts as if its p were one: what
    is decided beside it stays decided when they come.
    """
    families = evidence.declaration.comparison_families.items()
    compared = [
        _compare_condition(evidence, name, family.baseline, condition)
        for name, family in families
        for condition in family.conditions
    ]
    margin = evidence.declaration.effect
    tests = [None if each.verdict else choose_paired_test(each, margin) for each in compared]
    conclusions = conclude_paired_family(tests, margin, ALPHA)
    waits = any(comparison.verdict.startswith("open") for comparison in compared)
    return [
        conclude_comparison(comparison, conclusion, waits, "campaign") if conclusion else comparison
        for comparison, conclusion in zip(compared, conclusions, strict=True)
    ]


def choose_paired_test(comparison: ConditionComparison, margin: float) -> PairedTest:
    """Return the test of a comparison's differences: Student's t, or that of signs where runs collapsed."""
    if any(comparison.collapses):
        return sign_flip_paired_test(comparison.differences)
    return student_paired_test(comparison.differences, margin)


def conclude_comparison(
    comparison: ConditionComparison, conclusion: PairedConclusion, waits: bool, scope: str
) -> ConditionComparison:
    """Return the comparison with its conclusion, in words that know of collapses and of missing pairs.

    Args:
        comparison: Comparison with all its pairs.
        conclusion: Conclusion from its differences.
        waits: Whether others that are corrected with it lack pairs.
        scope: Name of what is corrected together.

    """
    words = conclusion.words
    if words.startswith("undecided") and any(comparison.collapses):
        pairs, (runs, baseline_runs) = len(comparison.seeds), comparison.collapses
        words = f"undecided: {runs} of {pairs} runs collapsed, {baseline_runs} of the baseline's"
    if words.startswith("undecided") and waits:
        words = f"open: other comparisons of the {scope} lack pairs"
    return dataclasses.replace(
        comparison,
        verdict=words,
        p=conclusion.p,
        p_equivalence=conclusion.p_equivalence,
        sign_flip=sign_flip_p(comparison.differences),
    )


def _compare_condition(evidence: CampaignEvidence, family: str, baseline: str, condition: str) -> ConditionComparison:
    """Compare two conditions; the conclusion stays empty if it only waits for the rest of the family."""
    declaration = evidence.declaration
    if reasons := evidence.list_metric_differences(condition, baseline):
        return ConditionComparison(family, baseline, condition, (), np.empty(0), f"not compared: {'; '.join(reasons)}")
    pairs = list(evidence.iterate_pairs(condition, baseline))
    if any(run.question_key != base.question_key for run, base in pairs):
        return ConditionComparison(
            family, baseline, condition, (), np.empty(0), "not compared: other questions or evaluations"
        )
    wanted, words = len(declaration.seeds), ""
    if len(pairs) < wanted:
        words = f"open: {len(pairs)} of {wanted} pairs"
    elif wanted < FEWEST:
        words = f"undecided: {wanted} {'pair' if wanted == 1 else 'pairs'} cannot reach a verdict"
    elif evidence.ledger.content.get("seeds_added"):
        words = "undecided: seeds were added to an exploratory campaign, which is no test"
    differences = _subtract_paired_runs(pairs, lambda run: summarise_run(run, declaration))
    seeds = tuple(run.seed for run, _ in pairs)
    return ConditionComparison(
        family, baseline, condition, seeds, differences, words, **_summarise_pairs(evidence, pairs, differences)
    )


def _summarise_pairs(
    evidence: CampaignEvidence, pairs: Sequence[tuple[FinishedRun, FinishedRun]], differences: Row
) -> dict[str, Any]:
    """Return the numbers that the present pairs allow, whether or not all declared pairs are there."""
    numbers: dict[str, Any] = {}
    if not pairs:
        return numbers
    end, primary = evidence.declaration.end, evidence.declaration.primary
    own, base = ([pair[side] for pair in pairs] for side in (0, 1))
    ends = [[run.metrics[end][primary] for run in runs] for runs in (own, base)]
    numbers["improves"] = probability_of_improvement(
        *([summarise_run(run, evidence.declaration) for run in runs] for runs in (own, base))
    )
    collapses = (int(collapsed_run_mask(ends[0]).sum()), int(collapsed_run_mask(ends[1]).sum()))
    numbers["collapses"] = collapses
    if len(pairs) >= 2:
        area = _subtract_paired_runs(pairs, lambda run: measure_curve_area(run, primary))
        test = sign_flip_paired_test(differences).test if any(collapses) else paired_t_test(differences)
        numbers |= {"test": test, "area": paired_t_test(area)}
    if len(pairs) >= 3 and np.ptp(differences) > 0:
        numbers["effect"] = paired_hedges_g(differences)
    if isinstance(evidence.declaration.summary, ReachedLevel):
        return numbers  # the level is one of all questions together
    if evidence.has_own_questions:
        if len(pairs) >= FEWEST:
            numbers["general"] = numbers["test"].interval  # every pair is of new questions already
        return numbers
    outcomes = evidence.summarised_outcomes(own) - evidence.summarised_outcomes(base)
    if min(outcomes.shape[:2]) >= FEWEST:
        numbers["general"] = new_question_interval(outcomes, numbers["test"].interval)
    return numbers


def summarise_run(run: FinishedRun, declaration: CampaignDeclaration) -> float:
    """Return what the campaign compares of a run: the end, the area or the speed of its primary metric."""
    primary, summary = declaration.primary, declaration.summary
    if summary == "end":
        return run.metrics[declaration.end][primary]
    if summary == "area":
        return measure_curve_area(run, primary)
    return max(0.0, 1 - steps_to_threshold(run.curve(primary), summary.level) / declaration.end)


def measure_curve_area(run: FinishedRun, metric: str) -> float:
    """Return the area under a held-out curve of a run, in the unit of the curve."""
    curve = run.curve(metric)
    return float(learning_curve_area(list(curve), list(curve.values())))


def _subtract_paired_runs(
    pairs: Sequence[tuple[FinishedRun, FinishedRun]], value: Callable[[FinishedRun], float]
) -> Row:
    """Return differences, rounded so that equal shares of questions differ by exactly zero."""
    return np.array([value(run) - value(base) for run, base in pairs], dtype=np.float64).round(12)
