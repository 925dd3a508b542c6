"""Every number of a report, unrounded, as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from rlcredit.report.comparison import Comparison
from rlcredit.report.evidence import Evidence
from rlcredit.report.summary import Summary
from rlcredit.report.training import Curve
from rlcredit.statistics.interval import Interval
from rlcredit.statistics.variance_components import VarianceComponents


def csv_files(
    evidence: Evidence,
    compared: Sequence[Comparison],
    summarised: Sequence[Summary],
    variances: Mapping[str, VarianceComponents],
    curves: Mapping[tuple[str, int], Mapping[str, Curve]],
) -> dict[str, str]:
    """Return every number of a report, unrounded, by the names of files."""
    runs = [
        {"condition": run.condition, "seed": run.seed, "step": step, **metrics}
        for run in evidence.runs.values()
        for step, metrics in run.metrics.items()
    ]
    training = [
        {"condition": condition, "seed": seed, "step": step, "metric": metric, "value": value}
        for (condition, seed), metrics in curves.items()
        for metric, curve in metrics.items()
        for step, value in curve.items()
    ]
    shares = [
        {"of": name, "factor": factor, "variance": variance, "share": found.shares[factor]}
        for name, found in variances.items()
        for factor, variance in found.variances.items()
    ]
    found = {
        "runs.csv": runs,
        "comparisons.csv": [_plain_comparison(each) for each in compared],
        "conditions.csv": [_plain_summary(each) for each in summarised],
        "variance.csv": shares,
        "training.csv": training,
    }
    return {name: _csv(records) for name, records in found.items() if records}


def _plain_comparison(each: Comparison) -> dict[str, Any]:
    test, area, effect, general = each.test, each.area, each.effect, each.general
    return {
        "family": each.family,
        "baseline": each.baseline,
        "condition": each.condition,
        "pairs": len(each.seeds),
        "difference": each.differences.mean() if len(each.seeds) else None,
        **_ends("", test.interval if test else None),
        **_ends("new_questions_", general),
        "t": test.statistic if test else None,
        "p_holm": each.p,
        "p_sign_flip": each.sign_flip,
        "p_equivalence_holm": each.p_equivalence,
        "hedges_g": effect.g if effect else None,
        **_ends("hedges_g_", effect.interval if effect else None),
        "probability_of_improvement": each.improves,
        "area_difference": area.difference if area else None,
        **_ends("area_", area.interval if area else None),
        "verdict": each.verdict,
    }


def _plain_summary(each: Summary) -> dict[str, Any]:
    estimates = {"pass_at_1": each.pass_at_1, "pass_at_k": each.pass_at_k, "area": each.area}
    plain: dict[str, Any] = {"condition": each.condition, "runs": each.runs}
    for name, estimate in estimates.items():
        plain |= {name: estimate.mean, **_ends(f"{name}_", estimate.interval)}
    return {**plain, "interquartile_mean": each.iqm, "deviation_between_runs": each.deviation}


def _ends(prefix: str, interval: Interval | None) -> dict[str, float | None]:
    low, high = (interval.low, interval.high) if interval else (None, None)
    return {f"{prefix}low": low, f"{prefix}high": high}


def _csv(records: Sequence[Mapping[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return buffer.getvalue()
