"""The CSV files of a report, with every number unrounded."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlcredit.base.files import render_csv
from rlcredit.campaign.record_schema import TOKEN_KINDS
from rlcredit.report.condition_comparison import ConditionComparison
from rlcredit.report.condition_summary import ConditionSummary
from rlcredit.report.evidence import CampaignEvidence
from rlcredit.report.run_measures import COMMON_MEASURES, MeasuredLead
from rlcredit.report.training_curves import Curve
from rlcredit.statistics.intervals import Interval
from rlcredit.statistics.variance_components import VarianceComponents


def render_csv_files(
    evidence: CampaignEvidence,
    comparisons: Sequence[ConditionComparison],
    summaries: Sequence[ConditionSummary],
    variances: Mapping[str, VarianceComponents],
    curves: Mapping[tuple[str, int], Mapping[str, Curve]],
) -> dict[str, str]:
    """Return the CSV files of a report, by file name."""
    runs = [
        {
            **{"condition": run.condition, "seed": run.seed, "step": run.steps[place]},
            **({"budget": place} if evidence.declaration.budget else {}),
            **metrics,
        }
        for run in evidence.runs.values()
        for place, metrics in run.metrics.items()
    ]
    tokens = [
        {"condition": run.condition, "seed": run.seed, "step": run.steps[place], **counts}
        for run in evidence.runs.values()
        for place, counts in run.tokens.items()
    ]
    training = [
        {"condition": condition, "seed": seed, "step": step, "metric": metric, "value": value}
        for (condition, seed), metrics in curves.items()
        for metric, curve in metrics.items()
        for step, value in curve.items()
    ]
    shares = [
        {"of": name, "factor": factor, "variance": variance, "share": components.shares[factor]}
        for name, components in variances.items()
        for factor, variance in components.variances.items()
    ]
    tables = {
        "runs.csv": runs,
        "tokens.csv": tokens,
        "comparisons.csv": [_flatten_comparison(comparison) for comparison in comparisons],
        "conditions.csv": [_flatten_summary(summary) for summary in summaries],
        "variance.csv": shares,
        "training.csv": training,
    }
    return {name: render_csv(records) for name, records in tables.items() if records}


def _flatten_comparison(comparison: ConditionComparison) -> dict[str, Any]:
    test, effect, general = comparison.test, comparison.effect, comparison.general
    return {
        "family": comparison.family,
        "baseline": comparison.baseline,
        "condition": comparison.condition,
        "rate_tuned_in": comparison.rate_source,
        "pairs": len(comparison.seeds),
        "collapsed": comparison.collapses[0],
        "baseline_collapsed": comparison.collapses[1],
        "difference": comparison.mean_difference,
        **flatten_interval("", comparison.interval),
        **flatten_interval("new_questions_", general),
        "t": test.statistic if test else None,
        "p_holm": comparison.p,
        "p_sign_flip": comparison.sign_flip,
        "p_equivalence_holm": comparison.p_equivalence,
        "hedges_g": effect.g if effect else None,
        **flatten_interval("hedges_g_", effect.interval if effect else None),
        "probability_of_improvement": comparison.improves,
        **flatten_measures(comparison),
        "verdict": comparison.verdict,
    }


def flatten_measures(comparison: ConditionComparison) -> dict[str, Any]:
    """Return the cells beside a verdict: both measures, head-room, power and costs."""
    headroom = comparison.headroom
    cells: dict[str, Any] = {
        "measure": comparison.measure,
        **flatten_leads(comparison.leads),
        "room_by_area": headroom.by_area if headroom else None,
        "room_at_first": headroom.at_first if headroom else None,
        "detectable": comparison.detectable,
    }
    for kind in TOKEN_KINDS:
        cost = comparison.costs.get(kind)
        cells |= {kind: cost.tokens if cost else None, f"{kind}_ratio": cost.ratio if cost else None}
    return cells


def flatten_leads(leads: Mapping[str, MeasuredLead]) -> dict[str, float | None]:
    """Return the leads at the end and by area as cells."""
    cells: dict[str, float | None] = {}
    for measure in COMMON_MEASURES:
        lead = leads[measure]
        cells[f"{measure}_difference"] = lead.test.difference if lead.test else None
        cells |= flatten_interval(f"{measure}_", lead.test.interval if lead.test else None)
        cells[f"p_{measure}_holm"] = lead.p
    return cells


def _flatten_summary(summary: ConditionSummary) -> dict[str, Any]:
    estimates = {"pass_at_1": summary.pass_at_1, "pass_at_k": summary.pass_at_k, "area": summary.area}
    plain: dict[str, Any] = {"condition": summary.condition, "runs": summary.runs, "collapsed": summary.collapsed}
    for name, estimate in estimates.items():
        plain |= {name: estimate.mean, **flatten_interval(f"{name}_", estimate.interval)}
    return {**plain, "interquartile_mean": summary.iqm, "deviation_between_runs": summary.deviation}


def flatten_interval(prefix: str, interval: Interval | None) -> dict[str, float | None]:
    """Return the two ends of an interval as cells; empty ones where there is no interval."""
    low, high = (interval.low, interval.high) if interval else (None, None)
    return {f"{prefix}low": low, f"{prefix}high": high}
