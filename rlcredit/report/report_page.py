"""The report of a campaign: a self-contained page, the same in Markdown, and the numbers and pictures behind them."""

import base64
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rlcredit.base.files import write_atomically
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.pages.charts import IntervalStrip, StripScale
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
from rlcredit.report.verdict_text import MEASURE_WORDS, explain_verdict, list_comparison_facts

_WRITTEN = re.compile(
    r"report\.(html|md)|(runs|tokens|comparisons|conditions|variance|training)\.csv|family\d+_\d+\.png"
)
"""What the files of a report are called."""


@dataclasses.dataclass(frozen=True)
class VerdictLine:
    """A comparison as the page shows it.

    Args:
        condition: Condition compared.
        difference: Mean difference, in percentage points.
        interval: Interval of the difference, in percentage points.
        strip: Difference and interval, drawn on the scale of all comparisons.
        verdict: Conclusion of the comparison.
        meaning: Meaning of the verdict; empty where the verdict says its reason itself.
        facts: Sentences that belong beside it.

    """

    condition: str
    difference: str
    interval: str
    strip: IntervalStrip
    verdict: str
    meaning: str
    facts: Sequence[str]


@dataclasses.dataclass(frozen=True)
class FamilySection:
    """The section of a family on the page.

    Args:
        name: Question that the family answers; empty if none was declared.
        baseline: Name of its baseline.
        lines: Comparisons of the family.
        table: Table of the comparisons.
        pictures: File names of the pictures, by title.

    """

    name: str
    baseline: str
    lines: Sequence[VerdictLine]
    table: Table
    pictures: Mapping[str, str]

    @property
    def title(self) -> str:
        """Question and baseline in words."""
        return f"{self.name}, against {self.baseline}" if self.name else f"Against {self.baseline}"


@dataclasses.dataclass(frozen=True)
class ReportContent:
    """Everything that the templates read, as ``report``.

    Args:
        evidence: Evidence of the campaign: its declaration, the runs in the report, and the refused runs.
        sections: Sections of the families of comparisons.
        stack_table: Stack of every condition, and its other differences from the baseline.
        summary_table: Every condition by itself.
        variance_table: Sources of the variance; without rows where too few runs are there.
        token_table: Tokens of the runs; without rows where no run has counted them.
        seed_table: Result of every run.
        config_table: Executed configurations.
        has_training_curves: Whether the pictures show training curves.

    """

    evidence: CampaignEvidence
    sections: Sequence[FamilySection]
    stack_table: Table
    summary_table: Table
    variance_table: Table
    token_table: Table
    seed_table: Table
    config_table: Table
    has_training_curves: bool

    @property
    def comparison_count(self) -> int:
        """Number of comparisons, all corrected together."""
        return sum(len(section.lines) for section in self.sections)

    @property
    def metric_label(self) -> str:
        """Primary metric, for people."""
        return report_tables.label_metric(self.evidence.declaration.primary)

    @property
    def outcomes_label(self) -> str:
        """Held-out questions of the comparisons, with their number if a run says it."""
        counts = [f"{len(run.questions[1])} " for run in self.evidence.runs.values()]
        metric = next(iter(self.evidence.measures.values()))
        return "".join(counts[:1]) + metric.over

    @property
    def definitions(self) -> dict[str, list[str]]:
        """Conditions by the settings under which their primary metric is measured."""
        conditions: dict[str, list[str]] = {}
        for name, metric in self.evidence.measures.items():
            settings = " ".join(f"{key}={value}" for key, value in metric.settings.items())
            conditions.setdefault(settings, []).append(name)
        return conditions

    @property
    def has_shared_draws(self) -> bool:
        """Whether all seeds share the sampling noise of held-out answers."""
        seeds = [metric.settings["model.validation_seed"] for metric in self.evidence.measures.values()]
        return None not in seeds

    @property
    def versions(self) -> dict[str, str]:
        """Versions and source of all runs; several if runs differ."""
        versions: dict[str, set[str]] = {}
        for run in self.evidence.runs.values():
            for name, value in run.entry["versions"].items():
                versions.setdefault(name.removeprefix("version."), set()).add(str(value))
        return {name: ", ".join(sorted(values)) for name, values in versions.items()}


def refuse_foreign_files(folder: Path) -> None:
    """Refuse a folder that contains files no report writes.

    Raises:
        ValueError: with what that is.

    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out: {shorten_name(folder)} is a file. Name a new folder.")
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if strangers := [name for name in names if not (_WRITTEN.fullmatch(name) or name.startswith("."))]:
        example = shorten_name(strangers[0])
        raise ValueError(f"--out: {shorten_name(folder)} holds other files, for instance {example}. Name a new folder.")


def write_report(
    evidence: CampaignEvidence, curves: Mapping[tuple[str, int], Mapping[str, Curve]], folder: Path
) -> list[ConditionComparison]:
    """Write ``report.html``, ``report.md``, CSV files and pictures into a folder; return the comparisons.

    Args:
        evidence: Evidence of the campaign.
        curves: Training curves by condition and seed; may be empty.
        folder: Folder, made if need be; tables and pictures of an earlier report are removed.

    Raises:
        ValueError: it holds something else, or cannot be written to.

    """
    refuse_foreign_files(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for file in [*folder.glob("*.csv"), *folder.glob("family*.png")]:
        file.unlink()
    comparisons = compare_conditions(evidence)
    summaries = summarise_conditions(evidence)
    variances = decompose_variance(evidence)
    for name, text in render_csv_files(evidence, comparisons, summaries, variances, curves).items():
        write_atomically(folder / name, text)
    content = ReportContent(
        evidence,
        list(_make_sections(evidence, comparisons, curves, folder)),
        make_stack_table(evidence),
        report_tables.make_summary_table(evidence, summaries),
        report_tables.make_variance_table(variances),
        report_tables.make_token_table(evidence),
        report_tables.make_seed_table(evidence),
        report_tables.make_config_table(evidence),
        has_training_curves=bool(curves),
    )

    def embed_picture(file: str) -> str:
        return "data:image/png;base64," + base64.b64encode((folder / file).read_bytes()).decode()

    for name in ("report.html", "report.md"):
        template = load_page_template(Path(__file__).with_name(name))
        write_atomically(folder / name, template.render(report=content, embed_picture=embed_picture))
    return comparisons


def _make_sections(
    evidence: CampaignEvidence,
    comparisons: Sequence[ConditionComparison],
    curves: Mapping[tuple[str, int], Mapping[str, Curve]],
    folder: Path,
) -> Iterator[FamilySection]:
    """Draw the pictures of every family, and yield its section."""
    margin = evidence.declaration.effect
    lines = make_verdict_lines(comparisons, margin)
    for number, (name, family) in enumerate(evidence.declaration.comparison_families.items(), start=1):
        members = [comparison for comparison in comparisons if comparison.family == name]
        pictures = draw_family_pictures(evidence, family, members, curves, folder, f"family{number}")
        member_lines = [line for line, comparison in zip(lines, comparisons, strict=True) if comparison.family == name]
        table = report_tables.make_comparison_table(members)
        baseline = evidence.declaration.label_condition(family.baseline)
        yield FamilySection(name, baseline, member_lines, table, pictures)


def make_verdict_lines(comparisons: Sequence[ConditionComparison], margin: float) -> list[VerdictLine]:
    """Return every comparison as the page shows it, in percentage points on one scale.

    Args:
        comparisons: Comparisons of all families.
        margin: Difference that does not matter, as a share.

    """
    points = []
    for comparison in comparisons:
        numbers = (comparison.mean_difference, *(comparison.interval or (None, None))[:2])
        points.append([None if number is None else 100 * number for number in numbers])
    ends = [number for row in points for number in row if number is not None]
    scale = StripScale.around([-100 * margin, 100 * margin, *ends])
    return [
        VerdictLine(
            comparison.labels[0],
            *report_tables.format_difference(comparison),
            IntervalStrip(scale, *row, margin=100 * margin),
            comparison.verdict,
            explain_verdict(comparison.verdict, margin, MEASURE_WORDS[comparison.measure]),
            list(list_comparison_facts(comparison)),
        )
        for comparison, row in zip(comparisons, points, strict=True)
    ]
