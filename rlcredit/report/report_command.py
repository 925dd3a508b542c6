"""``rlcredit report CAMPAIGN``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rlcredit.campaign.declaration import read_declaration
from rlcredit.config.arguments import CommandParser, parse_path
from rlcredit.config.passwords import redact_passwords
from rlcredit.report.evidence import read_campaign_evidence
from rlcredit.report.report_page import refuse_foreign_files, write_report
from rlcredit.report.training_curves import find_campaign_mlflow_run, load_training_curves


def make_report_parser() -> argparse.ArgumentParser:
    """Return the parser of ``rlcredit report``."""
    command = CommandParser(
        "rlcredit report", description="Say what a campaign has found: HTML, Markdown, CSV and PNG."
    )
    command.add_argument("campaign", type=parse_path, help="its file, or its folder")
    command.add_argument("--folder", type=parse_path, default=Path("campaigns"), help="where campaigns are kept")
    command.add_argument("--out", type=parse_path, help="where to write; `report` inside the folder if not given")
    return command


def run_report_command(args: Sequence[str]) -> int:
    """Write a report.

    Returns:
        0 if all that was declared is in it, 1 if runs are missing, refused or not compared, 2 if there is no campaign.

    """
    options = make_report_parser().parse_args(args)
    try:
        root = (
            options.folder / read_declaration(options.campaign).name if options.campaign.is_file() else options.campaign
        )
        out = options.out or root / "report"
        refuse_foreign_files(out)
        evidence = read_campaign_evidence(root)
    except ValueError as error:
        print(f"error: {redact_passwords(str(error))}", file=sys.stderr)
        return 2
    mlflow = find_campaign_mlflow_run(evidence)
    compared = write_report(evidence, load_training_curves(evidence, mlflow), out)
    for comparison in compared:
        print(f"{comparison.family}: {comparison.condition} against {comparison.baseline}: {comparison.verdict}")
    for name, reasons in evidence.refused.items():
        print(f"refused: {name}: {'; '.join(reasons)}")
    if evidence.absent:
        print(f"missing: {len(evidence.absent)} of {evidence.declared_count} runs")
    if mlflow:
        client, parent = mlflow
        client.log_artifacts(parent.info.run_id, str(out), "report")
    print(out / "report.html")
    uncompared = any(comparison.verdict.startswith("not compared") for comparison in compared)
    return 1 if evidence.refused or evidence.absent or uncompared else 0
