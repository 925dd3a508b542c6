"""The report of a campaign: a self-contained page, the same in Markdown, and the numbers and pictures behind them."""

import base64
import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcredit.base.files import write_atomically
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.pages.charts import IntervalStrip, StripScale
from rlcredit.pages.number_formats import NONE, format_difference_interval, format_signed_points
from rlcredit.pages.page_template import load_page_template
from rlcredit.pages.tables import Table
from rlcredit.report import report_tables
from rlcredit.report.condition_comparison import ConditionComparison, compare_conditions
from rlcredit.report.condition_stacks import make_stack_table
from rlcredit.report.condition_summary import decompose_variance, summarise_conditions
from rlcredit.report.csv_files import render_csv_files
from rlcredit.report.evidence import CampaignEvidence
from rlcredit.report.pictures import draw_family_pictures
from rlcredit.report.training_curves import Curve
from rlcredit.report.verdict_text import explain_verdict

_WRITTEN = re.compile(
    r"report\.(html|md)|(runs|tokens|comparisons|conditions|variance|training)\.csv|family\d+_\d+\.png"
)
"""What the files of a report are called."""


@dataclasses.dataclass(frozen=True)
class FamilySection:
    """The section of a family on the page.

    Args:
        name: Question that the family answers.
        baseline: Name of its baseline.
        comparisons: Comparisons of the family.
        table: Table of the comparisons.
        pictures: File names of the pictures, by what they show.

    """

    name: str
    baseline: str
    comparisons: Sequence[ConditionComparison]
    table: Table
    pictures: Mapping[str, str]

    @property
    def differences(self) -> list[str]:
        """Mean difference of each comparison, in percentage points."""
        return [format_signed_points(each.differences.mean()) if each.seeds else NONE for each in self.comparisons]

    @property
    def intervals(self) -> list[str]:
        """Interval of each comparison, in percentage points."""
        return [format_difference_interval(each.test.interval if each.test else None) for each in self.comparisons]


def refuse_foreign_files(out: Path) -> None:
    """Refuse a folder that contains files no report writes.

    Raises:
        ValueError: with what that is.

    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out: {shorten_name(out)} is a file. Name a new folder.")
    there = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    if others := [name for name in there if not (_WRITTEN.fullmatch(name) or name.startswith("."))]:
        raise ValueError(
            f"--out: {shorten_name(out)} holds other files, for instance {shorten_name(others[0])}. Name a new folder."
        )


def write_report(
    evidence: CampaignEvidence, curves: Mapping[tuple[str, int], Mapping[str, Curve]], out: Path
) -> list[ConditionComparison]:
    """Write ``report.html``, ``report.md``, CSV files and pictures into a folder; return the comparisons.

    Args:
        evidence: Evidence of the campaign.
        curves: Training curves by condition and seed; may be empty.
        out: Folder, made if need be; tables and pictures of an earlier report are removed.

    Raises:
        ValueError: it holds something else, or cannot be written to.

    """
    refuse_foreign_files(out)
    out.mkdir(parents=True, exist_ok=True)
    for earlier in [*out.glob("*.csv"), *out.glob("family*.png")]:
        earlier.unlink()
    compared, summarised, variances = (
        compare_conditions(evidence),
        summarise_conditions(evidence),
        decompose_variance(evidence),
    )
    for name, text in render_csv_files(evidence, compared, summarised, variances, curves).items():
        write_atomically(out / name, text)
    sections = []
    for number, (name, family) in enumerate(evidence.declaration.comparison_families.items(), start=1):
        members = [comparison for comparison in compared if comparison.family == name]
        drawn = draw_family_pictures(evidence, family, members, curves, out, f"family{number}")
        sections.append(
            FamilySection(name, family.baseline, members, report_tables.make_comparison_table(members), drawn)
        )
    content = {
        "declaration": evidence.declaration,
        "sha256": evidence.declaration.sha256[:12],
        "metric": next(iter(evidence.measures.values())),
        "definitions": _group_metric_definitions(evidence),
        "comparison_count": len(compared),
        "metric_label": report_tables.label_metric(evidence.declaration.primary),
        "compared_label": evidence.declaration.summary_label.format(
            report_tables.label_metric(evidence.declaration.primary)
        ),
        "stack_table": make_stack_table(evidence),
        "strips": draw_comparison_strips(compared, evidence.declaration.effect),
        "finished_count": len(evidence.runs),
        "declared_count": evidence.declared_count,
        "sections": sections,
        "summary_table": report_tables.make_summary_table(evidence, summarised),
        "variance_table": report_tables.make_variance_table(variances),
        "token_table": report_tables.make_token_table(evidence),
        "seed_table": report_tables.make_seed_table(evidence),
        "config_table": report_tables.make_config_table(evidence),
        "refused": evidence.refused,
        "has_training_curves": bool(curves),
        "versions": _collect_run_versions(evidence),
        "has_own_questions": evidence.has_own_questions,
        "has_shared_draws": all(m.settings["model.validation_seed"] is not None for m in evidence.measures.values()),
        "question_count": next((len(run.questions[1]) for run in evidence.runs.values()), None),
    }
    for name in ("report.html", "report.md"):
        write_atomically(out / name, _render_template(name, content, out))
    return compared


def draw_comparison_strips(
    compared: Sequence[ConditionComparison], margin: float
) -> dict[tuple[str, str], IntervalStrip]:
    """Return the difference of every comparison with its interval, in percentage points on one scale.

    Args:
        compared: Comparisons of all families.
        margin: Difference that does not matter, as a share.

    Returns:
        Strips by family and condition.

    """
    drawn = {
        (each.family, each.condition): (
            100 * float(each.differences.mean()) if len(each.seeds) else None,
            *([100 * end for end in each.test.interval[:2]] if each.test else [None, None]),
        )
        for each in compared
    }
    ends = [end for numbers in drawn.values() for end in numbers if end is not None]
    scale = StripScale.around([-100 * margin, 100 * margin, *ends])
    return {key: IntervalStrip(scale, *numbers, margin=100 * margin) for key, numbers in drawn.items()}


def _group_metric_definitions(evidence: CampaignEvidence) -> list[tuple[str, list[str]]]:
    """Return every definition of the primary metric, with the conditions that it holds for."""
    conditions: dict[str, list[str]] = {}
    for name, metric in evidence.measures.items():
        conditions.setdefault(" ".join(f"{key}={value}" for key, value in metric.settings.items()), []).append(name)
    return list(conditions.items())


def _collect_run_versions(evidence: CampaignEvidence) -> dict[str, str]:
    """Return versions and source of all runs; several if they differ."""
    versions: dict[str, set[str]] = {}
    for run in evidence.runs.values():
        for name, value in run.entry["versions"].items():
            versions.setdefault(name.removeprefix("version."), set()).add(str(value))
    return {name: ", ".join(sorted(values)) for name, values in versions.items()}


def _render_template(name: str, content: Mapping[str, Any], out: Path) -> str:
    def embed_picture(file: str) -> str:
        return "data:image/png;base64," + base64.b64encode((out / file).read_bytes()).decode()

    return load_page_template(Path(__file__).with_name(name)).render(
        content,
        embed_picture=embed_picture,
        explain_verdict=explain_verdict,
    )
