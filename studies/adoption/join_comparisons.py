"""Correct all comparisons together: write ``study.csv`` and ``collapses.csv`` from the results of every campaign.

python -m studies.adoption.join_comparisons

This is what ``rlcredit report CAMPAIGN ...`` writes of the campaigns' folders, from what is kept of them.
"""

import tempfile
from pathlib import Path

from rlcredit.base.files import write_atomically
from rlcredit.campaign.campaign_record import CampaignRecord
from rlcredit.campaign.declaration import CampaignDeclaration, read_declaration
from rlcredit.campaign.metric_definition import MetricDefinition
from rlcredit.campaign.record_schema import TOKEN_KINDS
from rlcredit.report.evidence import CampaignEvidence, FinishedRun
from rlcredit.report.study import compare_over_campaigns, write_study
from studies.adoption.declare_adoption import list_campaigns
from studies.numbers import Rows, has_results, read_results

FOLDER = Path(__file__).parent


def restore_runs(declaration: CampaignDeclaration, runs: Rows, tokens: Rows) -> dict[tuple[str, int], FinishedRun]:
    """Return the runs of a campaign from the rows of its ``runs.csv`` and ``tokens.csv``.

    Raises:
        ValueError: a declared run is missing.

    """
    counts = {
        (row["condition"], row["seed"], row["step"]): {kind: int(row[kind]) for kind in TOKEN_KINDS} for row in tokens
    }
    metrics: dict[tuple[str, int], dict[int, dict[str, float]]] = {}
    costs: dict[tuple[str, int], dict[int, dict[str, int]]] = {}
    for row in runs:
        key, place = (row["condition"], int(row["seed"])), int(row["budget"])
        metrics.setdefault(key, {})[place] = {declaration.primary: float(row[declaration.primary])}
        costs.setdefault(key, {})[place] = counts[row["condition"], row["seed"], row["step"]]
    restored = {key: FinishedRun(*key, ("", ()), {}, metrics[key], {}, {}, costs[key]) for key in metrics}
    declared = {(condition, seed) for condition in declaration.conditions for seed in declaration.seeds}
    if missing := declared - restored.keys():
        raise ValueError(f"{declaration.name} lacks {len(missing)} runs. Finish it, and keep its report again.")
    return restored


def restore_evidence(name: str) -> CampaignEvidence:
    """Return the evidence of a finished campaign from its declaration and its results."""
    declaration = read_declaration(FOLDER / "campaigns" / f"{name}.yaml")
    runs = restore_runs(declaration, read_results(f"{name}/runs"), read_results(f"{name}/tokens"))
    metric = MetricDefinition(declaration.primary, declaration.span_label)
    measures = dict.fromkeys(declaration.conditions, metric)
    return CampaignEvidence(declaration, CampaignRecord(FOLDER), runs, refused={}, absent={}, measures=measures)


def main() -> None:
    """Write the comparisons of every finished campaign, and the collapses of every arm."""
    names = [f"{name}_{policy}" for name, policy in list_campaigns()]
    campaigns = [restore_evidence(name) for name in names if has_results(f"{name}/runs")]
    with tempfile.TemporaryDirectory() as folder:
        write_study(compare_over_campaigns(campaigns), campaigns, Path(folder))
        for file in ("study.csv", "collapses.csv"):
            kept = FOLDER / "results" / "adoption" / file
            write_atomically(kept, (Path(folder) / file).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
