"""Tabulate finished runs of an MLflow database by condition: held-out pass@1 with its interval over seeds.

python scripts/tabulate_runs.py comparison/mlflow.db

"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from mlflow import MlflowClient
from mlflow.entities import Run
from scipy import stats

LAST = 10
"""Steps over which the entropy of training batches is averaged at the end of a run."""


def interval(values: list[float], level: float = 0.95) -> float:
    """Return half the width of Student's interval for the mean; infinity for a single value."""
    if len(values) < 2:
        return float("inf")
    return float(stats.t.ppf((1 + level) / 2, len(values) - 1) * stats.sem(values))


def finished(client: MlflowClient) -> dict[str, list[Run]]:
    """Return the runs that ended well, by condition, the last one of each seed."""
    found: dict[str, dict[str, Run]] = defaultdict(dict)
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    for run in client.search_runs(experiments, "attributes.status = 'FINISHED'", order_by=["attributes.start_time"]):
        found[run.data.tags["condition"]][run.data.tags["seed"]] = run
    return {condition: [runs[seed] for seed in sorted(runs, key=int)] for condition, runs in found.items()}


def row(client: MlflowClient, condition: str, runs: list[Run]) -> str:
    """Describe a condition by its final evaluations and the entropy of its last training batches."""
    solved = [run.data.metrics["val/pass_at_1"] for run in runs]
    length = float(np.mean([run.data.metrics["val/completion_length"] for run in runs]))
    histories = [client.get_metric_history(run.info.run_id, "train/entropy") for run in runs]
    entropy = float(np.mean([[each.value for each in history[-LAST:]] for history in histories]))
    seeds = ", ".join(f"{value:.3f}" for value in solved)
    mean, half = float(np.mean(solved)), interval(solved)
    return f"| `{condition}` | {mean:.3f} ± {half:.3f} | {seeds} | {length:.1f} | {entropy:.4f} |"


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path)
    args = parser.parse_args()
    if not args.database.is_file():
        parser.error(f"there is no {args.database}.")
    client = MlflowClient(f"sqlite:///{args.database.resolve()}")
    print("| condition | held-out pass@1 | by seed | tokens | entropy |\n|---|---|---|---|---|")
    for condition, runs in sorted(finished(client).items()):
        print(row(client, condition, runs))


if __name__ == "__main__":
    main()
