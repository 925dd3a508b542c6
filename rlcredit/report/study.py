"""Comparisons of several campaigns, corrected together, pooled over equal arms, and the collapses of every arm."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlcredit.base.files import render_csv, write_atomically
from rlcredit.campaign.declaration import ALPHA
from rlcredit.pages.number_formats import format_p_value
from rlcredit.pages.tables import Table
from rlcredit.report.condition_comparison import ConditionComparison, collect_comparisons, conclude_comparisons
from rlcredit.report.csv_files import flatten_interval, flatten_leads, flatten_measures
from rlcredit.report.evidence import CampaignEvidence
from rlcredit.report.report_tables import format_difference
from rlcredit.report.run_measures import COMMON_MEASURES, MeasuredLead
from rlcredit.report.verdict_text import format_lead, list_comparison_facts
from rlcredit.statistics.collapse import clopper_pearson_interval, collapsed_run_mask
from rlcredit.statistics.paired_comparison import NO_MARGIN, conclude_paired_family, paired_test


@dataclasses.dataclass(frozen=True)
class StudyComparison:
    """Comparison of a campaign, with its conclusion among all comparisons of a study.

    Args:
        campaign: Name of the campaign.
        comparison: Comparison as the campaign alone concludes it.
        overall: Same comparison, corrected over all campaigns.

    """

    campaign: str
    comparison: ConditionComparison
    overall: ConditionComparison


@dataclasses.dataclass(frozen=True)
class PooledComparison:
    """Leads of a condition over a baseline in all campaigns that compare them, a pair for each campaign and seed.

    Args:
        condition: Name of the condition.
        baseline: Name of the baseline.
        campaigns: Names of the campaigns.
        leads: Lead by the end and by the area; p-values are corrected over all pooled comparisons.

    """

    condition: str
    baseline: str
    campaigns: tuple[str, ...]
    leads: dict[str, MeasuredLead]


def compare_over_campaigns(campaigns: Sequence[CampaignEvidence]) -> list[StudyComparison]:
    """Compare the conditions of several campaigns, p-values corrected by Holm over all of them together.

    A comparison that its campaign could not test counts as if its p were one. Each keeps the margin of its campaign.

    Raises:
        ValueError: a campaign is named twice.

    """
    names = [evidence.declaration.name for evidence in campaigns]
    if duplicates := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{duplicates[0]} is named twice, and its comparisons must not count twice. Remove one.")
    campaign_rows, comparisons = [], []
    for evidence in campaigns:
        rows, margin = collect_comparisons(evidence), evidence.declaration.effect
        campaign_rows += [(evidence.declaration.name, row, margin) for row in rows]
        comparisons += conclude_comparisons(rows, [margin] * len(rows), "campaign")
    overall = conclude_comparisons(
        [row for _, row, _ in campaign_rows], [margin for *_, margin in campaign_rows], "study"
    )
    return [
        StudyComparison(name, comparison, study_comparison)
        for (name, *_), comparison, study_comparison in zip(campaign_rows, comparisons, overall, strict=True)
    ]


def pool_comparisons(comparisons: Sequence[StudyComparison]) -> list[PooledComparison]:
    """Return the leads of conditions that several campaigns compare with the same baseline.

    Only comparisons with all their pairs are pooled. What is said of their mean holds for these campaigns.
    """
    groups: dict[tuple[str, str], list[StudyComparison]] = {}
    for row in comparisons:
        if row.comparison.p is not None:
            groups.setdefault((row.comparison.condition, row.comparison.baseline), []).append(row)
    groups = {pair: rows for pair, rows in groups.items() if len(rows) > 1}
    leads: list[dict[str, MeasuredLead]] = [{} for _ in groups]
    for measure in COMMON_MEASURES:
        differences, tests = [], []
        for rows in groups.values():
            joined_row = np.concatenate([row.comparison.leads[measure].differences for row in rows])
            has_collapses = any(any(row.comparison.collapses) for row in rows)
            differences.append(joined_row)
            tests.append(paired_test(joined_row, NO_MARGIN, has_collapses))
        for place, conclusion in enumerate(conclude_paired_family(tests, NO_MARGIN, ALPHA)):
            assert conclusion is not None
            leads[place][measure] = MeasuredLead(differences[place], conclusion.test, conclusion.p)
    return [
        PooledComparison(condition, baseline, tuple(row.campaign for row in rows), by_measure)
        for ((condition, baseline), rows), by_measure in zip(groups.items(), leads, strict=True)
    ]


def count_arm_collapses(campaigns: Sequence[CampaignEvidence]) -> list[dict[str, Any]]:
    """Return the collapses of every condition over all campaigns that have it, with the exact interval of their rate.

    A run has collapsed if it ends far below the median of its condition in its campaign.
    """
    masks: dict[str, list[NDArray[np.bool_]]] = {}
    for evidence in campaigns:
        end, primary = evidence.declaration.end, evidence.declaration.primary
        for condition in evidence.declaration.conditions:
            if values := [run.metrics[end][primary] for run in evidence.runs_of(condition)]:
                masks.setdefault(condition, []).append(collapsed_run_mask(values))
    rows = []
    for condition, parts in masks.items():
        mask = np.concatenate(parts)
        cells = {"condition": condition, "campaigns": len(parts), "collapsed": int(mask.sum()), "runs": len(mask)}
        rows.append(cells | flatten_interval("", clopper_pearson_interval(cells["collapsed"], len(mask))))
    return rows


def make_study_table(comparisons: Sequence[StudyComparison]) -> Table:
    """Return the table of all comparisons, the verdict of the campaign beside that of the study."""
    columns = ("campaign", "condition", "against", "declared", "difference", "95 %", "p (campaign)", "p (study)")
    rows = [
        (
            *(row.campaign, *row.comparison.labels, row.comparison.measure, *format_difference(row.comparison)),
            *(format_p_value(row.comparison.p), format_p_value(row.overall.p)),
            *(row.comparison.verdict, row.overall.verdict),
        )
        for row in comparisons
    ]
    return Table((*columns, "verdict (campaign)", "verdict (study)"), rows)


def make_pooled_table(pools: Sequence[PooledComparison]) -> Table:
    """Return the table of leads over all campaigns of the same arms."""
    rows = []
    for row in pools:
        leads = [row.leads[measure] for measure in COMMON_MEASURES]
        counts = (len(row.campaigns), len(leads[0].differences))
        rows.append((row.condition, row.baseline, *map(str, counts), *map(format_lead, leads)))
    return Table(("condition", "against", "campaigns", "pairs", *COMMON_MEASURES), rows)


def make_collapse_table(arms: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of collapses over all campaigns."""
    rows = [
        (
            *(arm["condition"], str(arm["campaigns"]), f"{arm['collapsed']} of {arm['runs']}"),
            f"{100 * arm['low']:.1f} to {100 * arm['high']:.1f} %",
        )
        for arm in arms
    ]
    return Table(("condition", "campaigns", "collapsed", "95 %"), rows)


def write_study(comparisons: Sequence[StudyComparison], campaigns: Sequence[CampaignEvidence], folder: Path) -> Path:
    """Write ``study.md``, ``study.csv``, ``pooled.csv`` and ``collapses.csv`` into a folder; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(row.campaign for row in comparisons))
    pools, arms, page = pool_comparisons(comparisons), count_arm_collapses(campaigns), folder / "study.md"
    parts = [
        f"# {len(comparisons)} comparisons of {len(names)} campaigns",
        f"{', '.join(names)}. Differences are in percentage points, with the 95 % interval of each comparison by "
        "itself. P-values of no difference are corrected by Holm's procedure, over each campaign and over all "
        "campaigns together, and so are those of equivalence; ends, areas and the declared measure are a family "
        f"each. Verdicts at {ALPHA:.0%}, by the declared measure.",
        make_study_table(comparisons).to_markdown(),
        "## Beside every verdict",
        "\n".join(line for row in comparisons for line in _list_verdict_lines(row)),
        "## Over all campaigns of the same arms",
        "A pair for each campaign and seed; p-values are corrected over this table.",
        make_pooled_table(pools).to_markdown(),
        "## Collapses",
        "Runs that ended more than 10 pp below the median of their condition in their campaign, with the exact "
        "interval of Clopper and Pearson.",
        make_collapse_table(arms).to_markdown(),
    ]
    write_atomically(page, "\n\n".join(parts) + "\n")
    study, pool = [_flatten_study_row(row) for row in comparisons], [_flatten_pooled_row(row) for row in pools]
    for name, rows in {"study": study, "pooled": pool, "collapses": arms}.items():
        if rows:
            write_atomically(folder / f"{name}.csv", render_csv(rows))
    return page


def _list_verdict_lines(row: StudyComparison) -> list[str]:
    """Return the list items of a verdict and its facts, which are corrected over the study."""
    pair = " against ".join(row.overall.labels)
    facts = [f"  - {fact}" for fact in list_comparison_facts(row.overall)]
    return [f"- {row.campaign}, {pair}: **{row.overall.verdict}**", *facts]


def _flatten_study_row(row: StudyComparison) -> dict[str, Any]:
    """Return a comparison of a study as cells; columns of measures are corrected over the study."""
    return {
        "campaign": row.campaign,
        "family": row.comparison.family,
        "baseline": row.comparison.baseline,
        "condition": row.comparison.condition,
        "pairs": len(row.comparison.seeds),
        "difference": row.comparison.mean_difference,
        **flatten_interval("", row.comparison.interval),
        "p_campaign": row.comparison.p,
        "p_study": row.overall.p,
        "p_equivalence_campaign": row.comparison.p_equivalence,
        "p_equivalence_study": row.overall.p_equivalence,
        "verdict_campaign": row.comparison.verdict,
        "verdict_study": row.overall.verdict,
        **flatten_measures(row.overall),
    }


def _flatten_pooled_row(row: PooledComparison) -> dict[str, Any]:
    """Return a pooled comparison as cells."""
    names = {"baseline": row.baseline, "condition": row.condition, "campaigns": " ".join(row.campaigns)}
    return {**names, "pairs": len(row.leads["end"].differences), **flatten_leads(row.leads)}
