"""``rlcredit report CAMPAIGN``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rlcredit.campaign.declaration import read
from rlcredit.inputs.arguments import Parser, path
from rlcredit.inputs.passwords import redacted
from rlcredit.report.evidence import collected
from rlcredit.report.page import refuse_another_folder, written
from rlcredit.report.training import store, training_curves


def parser() -> argparse.ArgumentParser:
    """Return what the command line of a report accepts."""
    command = Parser("rlcredit report", description="Say what a campaign has found: HTML, Markdown, CSV and PNG.")
    command.add_argument("campaign", type=path, help="its file, or its folder")
    command.add_argument("--folder", type=path, default=Path("campaigns"), help="where campaigns are kept")
    command.add_argument("--out", type=path, help="where to write; `report` inside the folder if not given")
    return command


def main(args: Sequence[str]) -> int:
    """Write a report.

    Returns:
        0 if all that was declared is in it, 1 if runs are missing, refused or not compared, 2 if there is no campaign.

    """
    options = parser().parse_args(args)
    try:
        root = options.folder / read(options.campaign).name if options.campaign.is_file() else options.campaign
        out = options.out or root / "report"
        refuse_another_folder(out)
        evidence = collected(root)
    except ValueError as error:
        print(f"error: {redacted(str(error))}", file=sys.stderr)
        return 2
    mlflow = store(evidence)
    compared = written(evidence, training_curves(evidence, mlflow), out)
    for comparison in compared:
        print(f"{comparison.family}: {comparison.condition} against {comparison.baseline}: {comparison.verdict}")
    for name, reasons in evidence.refused.items():
        print(f"refused: {name}: {'; '.join(reasons)}")
    if evidence.absent:
        print(f"missing: {len(evidence.absent)} of {evidence.declared} runs")
    if mlflow:
        client, parent = mlflow
        client.log_artifacts(parent.info.run_id, str(out), "report")
    print(out / "report.html")
    uncompared = any(comparison.verdict.startswith("not compared") for comparison in compared)
    return 1 if evidence.refused or evidence.absent or uncompared else 0
