"""The tables of a report: for people, and complete as CSV."""

import csv
import dataclasses
import io
from collections.abc import Mapping, Sequence
from typing import Any

from rlcredit.report.comparison import Comparison
from rlcredit.report.evidence import Evidence
from rlcredit.report.summary import Estimate, Summary
from rlcredit.report.training import Curve
from rlcredit.statistics.interval import Interval
from rlcredit.statistics.variance_components import VarianceComponents

NONE = "-"


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of texts under named columns.

    Args:
        columns: their heads.
        rows: one text per column each.

    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def signed(value: float) -> str:
    """Write a difference of proportions in percentage points.

    Example:
        >>> signed(0.0123), signed(-0.004), signed(0.0)
        ('+1.23', '-0.40', '0.00')

    """
    text = f"{abs(100 * value):.2f}"
    return text if float(text) == 0 else f"{'+' if value > 0 else '-'}{text}"


def small(p: float | None) -> str:
    """Write a p-value.

    Example:
        >>> small(0.0312), small(0.00001), small(None)
        ('0.031', '<0.001', '-')

    """
    if p is None:
        return NONE
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _between(interval: Interval | None) -> str:
    return f"{signed(interval.low)} to {signed(interval.high)}" if interval else NONE


def _estimate(estimate: Estimate) -> str:
    interval = estimate.interval
    return f"{estimate.mean:.3f}" + (f" ({interval.low:.3f} to {interval.high:.3f})" if interval else "")


def comparison_table(found: Sequence[Comparison]) -> Table:
    """Show what decides a verdict; differences in percentage points."""
    columns = (
        "condition",
        "pairs",
        "difference",
        "95 %",
        "new questions too",
        "p (Holm)",
        "sign flip",
        "equivalence",
        "g",
        "wins",
        "area",
    )
    rows = [
        (
            each.condition,
            str(len(each.seeds)),
            signed(each.differences.mean()) if len(each.seeds) else NONE,
            _between(each.test.interval if each.test else None),
            _between(each.general),
            small(each.p),
            small(each.sign_flip),
            small(each.p_equivalence),
            f"{each.effect.g:.2f}" if each.effect else NONE,
            f"{each.improves:.0%}" if each.improves is not None else NONE,
            f"{signed(each.area.difference)} ({_between(each.area.interval)})" if each.area else NONE,
        )
        for each in found
    ]
    return Table(columns, rows)


def summary_table(found: Sequence[Summary], pass_k: int) -> Table:
    """Show every condition by itself."""
    columns = ("condition", "runs", "pass@1", f"pass@{pass_k}", "middle half", "between runs", "area")
    rows = [
        (
            each.condition,
            str(each.runs),
            _estimate(each.pass_at_1),
            _estimate(each.pass_at_k),
            f"{each.iqm:.3f}",
            f"{each.deviation:.3f}" if each.deviation is not None else NONE,
            _estimate(each.area),
        )
        for each in found
    ]
    return Table(columns, rows)


def variance_table(found: Mapping[str, VarianceComponents]) -> Table:
    """Show the share of every factor; a dash where it is none."""
    factors = list(dict.fromkeys(factor for each in found.values() for factor in each.variances))
    rows = [
        (name, *(f"{each.shares[factor]:.1%}" if factor in each.shares else NONE for factor in factors))
        for name, each in found.items()
    ]
    return Table(("of", *factors), rows)


def seed_table(evidence: Evidence) -> Table:
    """Show the primary metric of every run after the last step, or why there is none."""
    declaration = evidence.declaration

    def value(condition: str, seed: int) -> str:
        name = f"{condition}/seed{seed}"
        if run := evidence.runs.get((condition, seed)):
            return f"{run.metrics[declaration.steps][declaration.primary]:.4f}"
        return "refused" if name in evidence.refused else evidence.absent[name]

    rows = [(name, *(value(name, seed) for seed in declaration.seeds)) for name in declaration.conditions]
    return Table(("condition", *(f"seed {seed}" for seed in declaration.seeds)), rows)


def config_table(evidence: Evidence) -> Table:
    """Show the hash of the executed configuration of every condition, and what wrote it."""
    rows = []
    for name in evidence.declaration.conditions:
        runs = evidence.of(name)
        hashes, commits = (
            sorted({str(value) for value in values})
            for values in (
                [run.entry["executed_sha256"][:12] for run in runs],
                [run.entry["versions"]["git_commit"][:12] for run in runs],
            )
        )
        minutes = sum(run.entry["seconds"] for run in runs) / 60
        rows.append((name, str(len(runs)), ", ".join(hashes) or NONE, ", ".join(commits) or NONE, f"{minutes:.0f}"))
    return Table(("condition", "runs", "configuration", "source", "minutes"), rows)


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
