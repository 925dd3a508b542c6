"""The tables of a report, for people: rounded, in percentage points where they are differences."""

import dataclasses
from collections.abc import Mapping, Sequence

from rlcredit.campaign.differences import flat, sha256
from rlcredit.campaign.run_spec import named
from rlcredit.report.comparison import Comparison
from rlcredit.report.evidence import Evidence
from rlcredit.report.summary import Estimate, Summary
from rlcredit.statistics.collapse import highest_rate
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


def between(interval: Interval | None) -> str:
    """Write an interval of differences; pairs that are all alike have none, however sure it looks."""
    if interval is None:
        return NONE
    return f"{signed(interval.low)} to {signed(interval.high)}" if interval.high - interval.low > 1e-9 else "all alike"


def _estimate(estimate: Estimate) -> str:
    """Write a share and its interval, cut off at 0 and 1, which Student's interval may exceed."""
    if estimate.interval is None:
        return f"{estimate.mean:.3f}"
    low, high = (min(1.0, max(0.0, end)) for end in estimate.interval[:2])
    return f"{estimate.mean:.3f} ({low:.3f} to {high:.3f})"


def comparison_table(compared: Sequence[Comparison]) -> Table:
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
            comparison.condition,
            str(len(comparison.seeds)),
            signed(comparison.differences.mean()) if len(comparison.seeds) else NONE,
            between(comparison.test.interval if comparison.test else None),
            between(comparison.general),
            small(comparison.p),
            small(comparison.sign_flip),
            small(comparison.p_equivalence),
            f"{comparison.effect.g:.2f}" if comparison.effect else NONE,
            f"{comparison.improves:.0%}" if comparison.improves is not None else NONE,
            f"{signed(comparison.area.difference)} ({between(comparison.area.interval)})" if comparison.area else NONE,
        )
        for comparison in compared
    ]
    return Table(columns, rows)


def summary_table(evidence: Evidence, summaries: Sequence[Summary]) -> Table:
    """Show every condition by itself."""
    ks = sorted({evidence.pass_k(summary.condition) for summary in summaries})
    columns = (
        "condition",
        "runs",
        "collapsed",
        "pass@1",
        f"pass@{' or '.join(map(str, ks))}",
        "middle half",
        "between runs",
        "area",
    )
    rows = [
        (
            summary.condition,
            str(summary.runs),
            f"{summary.collapsed} (< {highest_rate(summary.collapsed, summary.runs):.0%})",
            _estimate(summary.pass_at_1),
            _estimate(summary.pass_at_k),
            f"{summary.iqm:.3f}",
            f"{summary.deviation:.3f}" if summary.deviation is not None else NONE,
            _estimate(summary.area),
        )
        for summary in summaries
    ]
    return Table(columns, rows)


def variance_table(decompositions: Mapping[str, VarianceComponents]) -> Table:
    """Show the share of every factor; a dash where it is none."""
    factors = list(dict.fromkeys(factor for components in decompositions.values() for factor in components.variances))
    rows = [
        (name, *(f"{components.shares[factor]:.1%}" if factor in components.shares else NONE for factor in factors))
        for name, components in decompositions.items()
    ]
    return Table(("of", *factors), rows)


def seed_table(evidence: Evidence) -> Table:
    """Show the primary metric of every run after the last step, or why there is none."""
    declaration = evidence.declaration

    def value(condition: str, seed: int) -> str:
        name = named(condition, seed)
        if run := evidence.runs.get((condition, seed)):
            return f"{run.metrics[declaration.steps][declaration.primary]:.4f}"
        return "refused" if name in evidence.refused else evidence.absent[name]

    rows = [(name, *(value(name, seed) for seed in declaration.seeds)) for name in declaration.conditions]
    return Table(("condition", *(f"seed {seed}" for seed in declaration.seeds)), rows)


def config_table(evidence: Evidence) -> Table:
    """Show what identifies the executed configuration of every condition, and the sources that ran it."""
    rows = []
    for name in evidence.declaration.conditions:
        runs = evidence.of(name)
        commits = sorted({short(run.entry["versions"]["git_commit"]) for run in runs})
        minutes = sum(run.entry["seconds"] for run in runs) / 60
        rows.append((name, str(len(runs)), _identity(evidence, name), ", ".join(commits) or NONE, f"{minutes:.0f}"))
    return Table(("condition", "runs", "configuration", "source", "minutes"), rows)


def _identity(evidence: Evidence, condition: str) -> str:
    """Hash the configuration of a condition, which its runs have executed, without what differs between runs."""
    leaves = flat(evidence.ledger.content["configs"][condition])
    own = ("seed_everything", "threads", "trainer.default_root_dir")
    return sha256({name: value for name, value in leaves.items() if name not in own})[:12]


def short(commit: str) -> str:
    """Shorten a commit, and keep the mark of a tree that was edited since.

    Example:
        >>> short("760a1acd0f5e1c0b9a-dirty"), short("unknown")
        ('760a1acd0f5e-dirty', 'unknown')

    """
    return commit[:12] + ("-dirty" if commit.endswith("-dirty") else "")
