"""``rlcredit report CAMPAIGN``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rlcredit.campaign.command import Parser
from rlcredit.campaign.declaration import read
from rlcredit.report.evidence import collected
from rlcredit.report.page import written
from rlcredit.report.training import tracking_uri


def parser() -> argparse.ArgumentParser:
    """Return what the command line of a report accepts."""
    made = Parser("rlcredit report", description="Say what a campaign has found: HTML, Markdown, CSV and PNG.")
    made.add_argument("campaign", type=Path, help="its file, or its folder")
    made.add_argument("--folder", type=Path, default=Path("campaigns"), help="where campaigns are kept")
    made.add_argument("--out", type=Path, help="where to write; `report` inside the folder if not given")
    return made


def main(args: Sequence[str]) -> int:
    """Write a report; return 0 if all that was declared is in it, 1 if runs are missing or refused, 2 if none is."""
    given = parser().parse_args(args)
    try:
        root = given.folder / read(given.campaign).name if given.campaign.is_file() else given.campaign
        evidence = collected(root)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    out = given.out or root / "report"
    for comparison in written(evidence, out):
        print(f"{comparison.family}: {comparison.condition} against {comparison.baseline}: {comparison.verdict}")
    for name, reasons in evidence.refused.items():
        print(f"refused: {name}: {'; '.join(reasons)}")
    if evidence.absent:
        print(f"missing: {len(evidence.absent)} of {evidence.declared} runs")
    uri, parent = tracking_uri(evidence), evidence.ledger.content.get("mlflow_run")
    if uri and parent:
        from mlflow import MlflowClient  # noqa: PLC0415

        MlflowClient(uri).log_artifacts(parent, str(out), "report")
    print(out / "report.html")
    return 1 if evidence.refused or evidence.absent else 0
