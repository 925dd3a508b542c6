"""Comparisons of several campaigns, corrected together."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from rlcredit.base.files import render_csv, write_atomically
from rlcredit.campaign.declaration import ALPHA
from rlcredit.pages.number_formats import format_p_value
from rlcredit.pages.tables import Table
from rlcredit.report.condition_comparison import (
    ConditionComparison,
    choose_paired_test,
    compare_conditions,
    conclude_comparison,
)
from rlcredit.report.csv_files import flatten_interval
from rlcredit.report.evidence import CampaignEvidence
from rlcredit.report.report_tables import format_difference
from rlcredit.statistics.paired_comparison import conclude_paired_family


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


def compare_over_campaigns(campaigns: Sequence[CampaignEvidence]) -> list[StudyComparison]:
    """Compare the conditions of several campaigns, p-values corrected by Holm over all of them together.

    A comparison that its campaign could not test counts as if its p were one. Each keeps the margin of its campaign.

    Raises:
        ValueError: a campaign is named twice.

    """
    names = [evidence.declaration.name for evidence in campaigns]
    if duplicates := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{duplicates[0]} is named twice, and its comparisons must not count twice. Remove one.")
    rows = [(evidence, comparison) for evidence in campaigns for comparison in compare_conditions(evidence)]
    margins = [evidence.declaration.effect for evidence, _ in rows]
    tests = [
        None if comparison.p is None else choose_paired_test(comparison, margin)
        for (_, comparison), margin in zip(rows, margins, strict=True)
    ]
    waits = any(comparison.verdict.startswith("open") for _, comparison in rows)
    comparisons = []
    for (evidence, comparison), conclusion in zip(rows, conclude_paired_family(tests, margins, ALPHA), strict=True):
        overall = conclude_comparison(comparison, conclusion, waits, "study") if conclusion else comparison
        comparisons.append(StudyComparison(evidence.declaration.name, comparison, overall))
    return comparisons


def make_study_table(comparisons: Sequence[StudyComparison]) -> Table:
    """Return the table of all comparisons, the verdict of the campaign beside that of the study."""
    columns = ("campaign", "condition", "against", "difference", "95 %", "p (campaign)", "p (study)")
    rows = [
        (
            row.campaign,
            row.comparison.condition,
            row.comparison.baseline,
            *format_difference(row.comparison),
            format_p_value(row.comparison.p),
            format_p_value(row.overall.p),
            row.comparison.verdict,
            row.overall.verdict,
        )
        for row in comparisons
    ]
    return Table((*columns, "verdict (campaign)", "verdict (study)"), rows)


def write_study(comparisons: Sequence[StudyComparison], folder: Path) -> Path:
    """Write ``study.md`` and ``study.csv`` into a folder; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    campaigns = list(dict.fromkeys(row.campaign for row in comparisons))
    page = folder / "study.md"
    text = (
        f"# {len(comparisons)} comparisons of {len(campaigns)} campaigns\n\n{', '.join(campaigns)}. Differences are in "
        "percentage points, with the 95 % interval of each comparison by itself. P-values of no difference are "
        "corrected by Holm's procedure, over each campaign and over all campaigns together, and so are those of "
        f"equivalence. Verdicts at {ALPHA:.0%}.\n\n"
    )
    write_atomically(page, text + make_study_table(comparisons).to_markdown() + "\n")
    rows = [
        {
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
        }
        for row in comparisons
    ]
    write_atomically(folder / "study.csv", render_csv(rows))
    return page
