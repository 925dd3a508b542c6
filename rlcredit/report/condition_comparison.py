"""Comparisons of a condition with a baseline: paired differences, corrected tests, and a conclusion in words."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlcredit.campaign.declaration import ALPHA, ReachedLevel
from rlcredit.report.evidence import CampaignEvidence
from rlcredit.report.run_measures import (
    COMMON_MEASURES,
    MeasuredLead,
    Pairs,
    Row,
    TokenCost,
    count_collapses,
    has_changed,
    measure_costs,
    measure_headroom,
    measure_lead,
    summarise_run,
)
from rlcredit.statistics.headroom import Headroom
from rlcredit.statistics.hedges_g import StandardizedEffect, paired_hedges_g
from rlcredit.statistics.intervals import Interval
from rlcredit.statistics.new_question_interval import new_question_interval
from rlcredit.statistics.paired_comparison import (
    PairedConclusion,
    conclude_paired_family,
    paired_test,
)
from rlcredit.statistics.run_aggregates import probability_of_improvement
from rlcredit.statistics.sign_flip import fewest_sign_flip_pairs, sign_flip_p
from rlcredit.statistics.t_test import TTest

FEWEST_PAIRS = fewest_sign_flip_pairs(ALPHA)
"""Pairs below which no test reaches the level, nor an interval for new questions the 95 % it is called."""


@dataclasses.dataclass(frozen=True)
class ConditionComparison:
    """Comparison of the paired runs of a condition and its baseline.

    Args:
        family: Question that the comparison belongs to.
        baseline: Name of the baseline.
        condition: Name of the condition compared.
        seeds: Seeds of the pairs, n of them.
        measure: Declared measure, by which the verdict is given: ``end``, ``area``, ``steadiness`` or ``level``.
        leads: Lead by every measure.
        verdict: Conclusion in words; "open" or "not compared" with the reason where there is none.
        labels: Names of the condition and its baseline, which say where nobody tuned a learning rate.
        rate_source: Campaign in which the condition's learning rate was chosen, as declared.
        sign_flip: Two-sided p-value of the sign-flip test, None where there is no conclusion: an earlier look would be
            no test.
        p: P-value of no difference by the declared measure, adjusted by Holm for all that is compared; None where there
            is no conclusion.
        p_equivalence: P-value of a difference beyond the margin, adjusted in the same way; one where runs collapsed,
            None where there is no conclusion.
        detectable: True difference that the comparison would have found with a power of 80 %; None unless undecided.
        collapses: Number of runs of the condition that collapsed, and number of the baseline.
        general: Interval for new seeds and new questions alike, None below six pairs or questions.
        effect: Hedges' g of the differences, None below three pairs and where they do not spread.
        improves: How often a run of the condition beats one of the baseline.
        headroom: Largest possible lead over the baseline by area, None without pairs.
        costs: Tokens by kind; empty where a run has not counted them.

    """

    family: str
    baseline: str
    condition: str
    seeds: tuple[int, ...]
    measure: str
    leads: Mapping[str, MeasuredLead]
    verdict: str
    labels: tuple[str, str] = ("", "")
    rate_source: str | None = None
    sign_flip: float | None = None
    p: float | None = None
    p_equivalence: float | None = None
    detectable: float | None = None
    collapses: tuple[int, int] = (0, 0)
    general: Interval | None = None
    effect: StandardizedEffect | None = None
    improves: float | None = None
    headroom: Headroom | None = None
    costs: Mapping[str, TokenCost] = dataclasses.field(default_factory=dict)

    @property
    def differences(self) -> Row:
        """Differences of the declared measure."""
        return self.leads[self.measure].differences

    @property
    def test(self) -> TTest | None:
        """Test of the declared measure."""
        return self.leads[self.measure].test

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
    comparisons = collect_comparisons(evidence)
    return conclude_comparisons(comparisons, [evidence.declaration.effect] * len(comparisons), "campaign")


def collect_comparisons(evidence: CampaignEvidence) -> list[ConditionComparison]:
    """Return all declared comparisons before any correction; the verdict is empty where one can be given."""
    return [
        _compare_condition(evidence, name, family.baseline, condition)
        for name, family in evidence.declaration.comparison_families.items()
        for condition in family.conditions
    ]


def conclude_comparisons(
    comparisons: Sequence[ConditionComparison], margins: Sequence[float], scope: str
) -> list[ConditionComparison]:
    """Return the comparisons with their conclusions, corrected together: by the declared measure, and by every other.

    Args:
        comparisons: Comparisons as :func:`collect_comparisons` returns them.
        margins: Difference that does not matter, for each.
        scope: Name of what is corrected together.

    """
    conclusions = _conclude_leads(comparisons, margins)
    conclusions_by_measure = {measure: _conclude_leads(comparisons, margins, measure) for measure in COMMON_MEASURES}
    has_gaps = any(row.verdict.startswith("open") for row in comparisons)
    wait = f"open: other comparisons of the {scope} lack pairs" if has_gaps else ""
    rows = []
    for place, (row, conclusion, margin) in enumerate(zip(comparisons, conclusions, margins, strict=True)):
        if conclusion is None:
            rows.append(row)
            continue
        verdict = _word_verdict(row, conclusion, margin, wait)
        ps = {measure: part.p for measure, parts in conclusions_by_measure.items() if (part := parts[place])}
        rows.append(_conclude_comparison(row, conclusion, ps, verdict))
    return rows


def _conclude_leads(
    comparisons: Sequence[ConditionComparison], margins: Sequence[float], measure: str | None = None
) -> list[PairedConclusion | None]:
    """Conclude from the leads by one measure, or by the declared one of each comparison."""
    tests = []
    for row, margin in zip(comparisons, margins, strict=True):
        differences = row.leads[measure or row.measure].differences
        tests.append(None if row.verdict else paired_test(differences, margin, any(row.collapses)))
    return conclude_paired_family(tests, margins, ALPHA)


def _conclude_comparison(
    comparison: ConditionComparison, conclusion: PairedConclusion, ps: Mapping[str, float], verdict: str
) -> ConditionComparison:
    """Return the comparison with its conclusion, and the corrected p-values of its measures."""
    leads = {
        measure: dataclasses.replace(lead, p=ps.get(measure, conclusion.p))
        for measure, lead in comparison.leads.items()
    }
    return dataclasses.replace(
        comparison,
        leads=leads,
        verdict=verdict,
        p=conclusion.p,
        p_equivalence=conclusion.p_equivalence,
        detectable=conclusion.detectable if verdict.startswith("undecided") else None,
        sign_flip=sign_flip_p(comparison.differences),
    )


def _word_verdict(comparison: ConditionComparison, conclusion: PairedConclusion, margin: float, wait: str) -> str:
    """Return the conclusion in words that know of collapses, of missing pairs and of head-room."""
    words, (runs, baseline_runs) = conclusion.words, comparison.collapses
    kind, _, reason = words.partition(": ")
    if kind in ("better", "worse"):
        return words
    if not words.startswith("equivalent"):
        if wait:
            return wait
        if runs or baseline_runs:
            collapses = f"{runs} of {len(comparison.seeds)} runs collapsed, {baseline_runs} of the baseline's"
            words = f"{kind}: {collapses}" + (f", and {reason}" if kind == "could not decide" else "")
    headroom = comparison.headroom
    if comparison.measure == "area" and headroom and headroom.is_spent(margin):
        outlook = f"it is not {100 * margin:g} pp behind" if words.startswith("equivalent") else "it may be behind"
        return f"no room: a lead of {100 * headroom.by_area:.1f} pp at most was possible; {outlook}"
    return words


def _compare_condition(evidence: CampaignEvidence, family: str, baseline: str, condition: str) -> ConditionComparison:
    """Compare two conditions; the conclusion stays empty if it only waits for the rest of the family."""
    declaration = evidence.declaration
    measure = "level" if isinstance(declaration.summary, ReachedLevel) else declaration.summary
    measures = dict.fromkeys((*COMMON_MEASURES, measure))
    labels = (declaration.label_condition(condition), declaration.label_condition(baseline))
    source = declaration.rates_from.get(condition)
    pairs = list(evidence.iterate_pairs(condition, baseline))
    verdict = ""
    if reasons := evidence.list_metric_differences(condition, baseline):
        verdict = f"not compared: {'; '.join(reasons)}"
    elif any(run.question_key != base.question_key for run, base in pairs):
        verdict = "not compared: other questions or evaluations"
    if verdict:
        leads = {name: MeasuredLead(np.empty(0)) for name in measures}
        return ConditionComparison(family, baseline, condition, (), measure, leads, verdict, labels, source)
    pair_count = len(declaration.seeds)
    if len(pairs) < pair_count:
        verdict = f"open: {len(pairs)} of {pair_count} pairs"
    elif pair_count < FEWEST_PAIRS:
        verdict = f"could not decide: {pair_count} {'pair' if pair_count == 1 else 'pairs'} cannot reach a verdict"
    elif not any(has_changed(run, declaration.primary) for pair in pairs for run in pair):
        verdict = "could not decide: no run changed its score"
    elif evidence.ledger.content.get("seeds_added"):
        verdict = "undecided: seeds were added to an exploratory campaign, which is no test"
    collapses = count_collapses(evidence, pairs)
    leads = {name: measure_lead(pairs, declaration, name, any(collapses)) for name in measures}
    seeds = tuple(run.seed for run, _ in pairs)
    comparison = ConditionComparison(
        family, baseline, condition, seeds, measure, leads, verdict, labels, source, collapses=collapses
    )
    return dataclasses.replace(comparison, **_summarise_pairs(evidence, pairs, comparison)) if pairs else comparison


def _summarise_pairs(evidence: CampaignEvidence, pairs: Pairs, comparison: ConditionComparison) -> dict[str, Any]:
    """Return the numbers that the present pairs allow, whether or not all declared pairs are there."""
    condition_runs, baseline_runs = ([pair[side] for pair in pairs] for side in (0, 1))
    numbers: dict[str, Any] = {
        "improves": probability_of_improvement(
            *([summarise_run(run, evidence.declaration) for run in runs] for runs in (condition_runs, baseline_runs))
        ),
        "headroom": measure_headroom(evidence, baseline_runs),
        "costs": measure_costs(condition_runs, baseline_runs),
    }
    differences, interval = comparison.differences, comparison.interval
    if len(pairs) >= 3 and np.ptp(differences) > 0:
        numbers["effect"] = paired_hedges_g(differences)
    if comparison.measure not in COMMON_MEASURES or interval is None:
        return numbers  # such a measure is one of all questions together
    if evidence.has_own_questions:
        if len(pairs) >= FEWEST_PAIRS:
            numbers["general"] = interval  # every pair is of new questions already
        return numbers
    outcomes = evidence.summarised_outcomes(condition_runs) - evidence.summarised_outcomes(baseline_runs)
    if min(outcomes.shape[:2]) >= FEWEST_PAIRS:
        numbers["general"] = new_question_interval(outcomes, interval)
    return numbers
