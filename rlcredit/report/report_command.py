"""``rlcredit report CAMPAIGN ...``."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rlcredit.campaign.declaration import read_declaration
from rlcredit.config.passwords import redact_passwords
from rlcredit.config.paths import find_config_file
from rlcredit.report.condition_comparison import ConditionComparison
from rlcredit.report.evidence import read_campaign_evidence
from rlcredit.report.report_options import make_report_parser
from rlcredit.report.report_page import refuse_foreign_files, write_report
from rlcredit.report.study import compare_over_campaigns, write_study
from rlcredit.report.training_curves import find_campaign_mlflow_run, load_training_curves
from rlcredit.report.verdict_text import list_comparison_facts

_CAMPAIGNS_FOLDER = Path("campaigns")
"""Folder of a campaign that is named by its declaration."""


def run_report_command(args: Sequence[str]) -> int:
    """Write a report.

    Returns:
        0 if all that was declared is in it, 1 if runs are missing, refused or not compared, 2 if there is no campaign.

    """
    options = make_report_parser().parse_args(args)
    try:
        roots = [find_campaign_folder(path) for path in options.campaign]
        if len(roots) > 1:
            return report_study(roots, options.out or roots[0].parent / "study")
        folder = options.out or roots[0] / "report"
        refuse_foreign_files(folder)
        evidence = read_campaign_evidence(roots[0])
    except ValueError as error:
        print(f"error: {redact_passwords(str(error))}", file=sys.stderr)
        return 2
    mlflow = find_campaign_mlflow_run(evidence)
    comparisons = write_report(evidence, load_training_curves(evidence, mlflow), folder)
    for comparison in comparisons:
        question = f"{comparison.family}: " if comparison.family else ""
        print(f"{question}{' against '.join(comparison.labels)}: {comparison.verdict}")
        print_facts(comparison)
    for name, reasons in evidence.refused.items():
        print(f"refused: {name}: {'; '.join(reasons)}")
    if evidence.absent:
        print(f"missing: {len(evidence.absent)} of {evidence.declared_count} runs")
    if mlflow:
        client, parent = mlflow
        client.log_artifacts(parent.info.run_id, str(folder), "report")
    print(folder / "report.html")
    has_gap = any(comparison.verdict.startswith("not compared") for comparison in comparisons)
    return 1 if evidence.refused or evidence.absent or has_gap else 0


def find_campaign_folder(path: Path) -> Path:
    """Return the folder of a campaign that is named by its folder, or by its declaration: a file here or a shipped one.

    Raises:
        ValueError: a file that is named is none, or no declaration.

    """
    file = Path(find_config_file(str(path)))
    if file.is_file() or (file.suffix in (".yaml", ".yml") and not file.is_dir()):
        return _CAMPAIGNS_FOLDER / read_declaration(file).name
    return path


def print_facts(comparison: ConditionComparison) -> None:
    """Print the numbers that belong beside a verdict."""
    for fact in list_comparison_facts(comparison):
        print(f"  {fact}")


def report_study(roots: Sequence[Path], folder: Path) -> int:
    """Write one table of all comparisons of several campaigns; return 0 if every one is complete, 1 if not."""
    campaigns = [read_campaign_evidence(root) for root in roots]
    comparisons = compare_over_campaigns(campaigns)
    if not comparisons:
        raise ValueError("these campaigns declare no comparison. Name campaigns with two conditions or more.")
    for row in comparisons:
        pair = " against ".join(row.comparison.labels)
        print(f"{row.campaign}: {pair}: {row.comparison.verdict}; over the study: {row.overall.verdict}")
        print_facts(row.overall)
    print(write_study(comparisons, campaigns, folder))
    return int(any(evidence.refused or evidence.absent for evidence in campaigns))
