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
        own: Comparison as the campaign alone concludes it.
        overall: Same comparison, corrected over all campaigns.

    """

    campaign: str
    own: ConditionComparison
    overall: ConditionComparison


def compare_over_campaigns(campaigns: Sequence[CampaignEvidence]) -> list[StudyComparison]:
    """Compare the conditions of several campaigns, p-values corrected by Holm over all of them together.

    A comparison that its campaign could not test counts as if its p were one. Each keeps the margin of its campaign.

    Raises:
        ValueError: a campaign is named twice.

    """
    names = [evidence.declaration.name for evidence in campaigns]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{repeated[0]} is named twice, and its comparisons must not count twice. Remove one.")
    compared = [(evidence, each) for evidence in campaigns for each in compare_conditions(evidence)]
    margins = [evidence.declaration.effect for evidence, _ in compared]
    tests = [
        None if each.p is None else choose_paired_test(each, margin)
        for (_, each), margin in zip(compared, margins, strict=True)
    ]
    waits = any(each.verdict.startswith("open") for _, each in compared)
    conclusions = conclude_paired_family(tests, margins, ALPHA)
    return [
        StudyComparison(
            evidence.declaration.name,
            each,
            conclude_comparison(each, conclusion, waits, "study") if conclusion else each,
        )
        for (evidence, each), conclusion in zip(compared, conclusions, strict=True)
    ]


def make_study_table(compared: Sequence[StudyComparison]) -> Table:
    """Return the table of all comparisons, the verdict of the campaign beside that of the study."""
    columns = ("campaign", "condition", "against", "difference", "95 %", "p (campaign)", "p (study)")
    rows = [
        (
            each.campaign,
            each.own.condition,
            each.own.baseline,
            *format_difference(each.own),
            format_p_value(each.own.p),
            format_p_value(each.overall.p),
            each.own.verdict,
            each.overall.verdict,
        )
        for each in compared
    ]
    return Table((*columns, "verdict (campaign)", "verdict (study)"), rows)


def write_study(compared: Sequence[StudyComparison], out: Path) -> Path:
    """Write ``study.md`` and ``study.csv`` into a folder; return the page."""
    out.mkdir(parents=True, exist_ok=True)
    campaigns = list(dict.fromkeys(each.campaign for each in compared))
    page = out / "study.md"
    text = (
        f"# {len(compared)} comparisons of {len(campaigns)} campaigns\n\n{', '.join(campaigns)}. Differences are in "
        "percentage points, with the 95 % interval of each comparison by itself. P-values of no difference are "
        "corrected by Holm's procedure, over each campaign and over all campaigns together, and so are those of "
        f"equivalence. Verdicts at {ALPHA:.0%}.\n\n"
    )
    write_atomically(page, text + make_study_table(compared).to_markdown() + "\n")
    rows = [
        {
            "campaign": each.campaign,
            "family": each.own.family,
            "baseline": each.own.baseline,
            "condition": each.own.condition,
            "pairs": len(each.own.seeds),
            "difference": each.own.mean_difference,
            **flatten_interval("", each.own.interval),
            "p_campaign": each.own.p,
            "p_study": each.overall.p,
            "p_equivalence_campaign": each.own.p_equivalence,
            "p_equivalence_study": each.overall.p_equivalence,
            "verdict_campaign": each.own.verdict,
            "verdict_study": each.overall.verdict,
        }
        for each in compared
    ]
    write_atomically(out / "study.csv", render_csv(rows))
    return page
