"""What the shipped policies can do, what GRPO teaches them, and what the oracle says of their forks.

ORACLE=studies/credit_patterns/conditions/oracle_grpo.yaml
rlcredit fit --config configs/tiny.yaml --config $ORACLE --condition aligned
rlcredit fit --config configs/tiny.yaml --config configs/organisms/decoy.yaml --config $ORACLE --condition decoy
python -m studies.credit_patterns.tabulate_organisms mlflow.db --out organisms.csv
python -m studies.credit_patterns.tabulate_organisms organisms.csv

Runs are of the policy that their condition names; several seeds of each are averaged.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rlcredit.cards.card_policies import list_policy_names
from rlcredit.pages.tables import Table
from studies import csv_rows
from studies.mlflow_metrics import read_logged_metrics

ORACLE = "probe/CreditOracle/"
PASS = "val/pass_at_1"
LINES = (
    ("pass@1 before training", PASS, "first", "{:.2f}"),
    ("after GRPO", PASS, "last", "{:.2f}"),
    ("tokens of a completion", "val/completion_length", "first", "{:.0f}"),
    ("entropy of a token, nats", "val/entropy", "first", "{:.2f}"),
    ("tokens that decide", f"{ORACLE}fork_fraction", "first", "{:.1%}"),
    ("area: surprisal finds them", f"{ORACLE}surprisal_auc", "first", "{:.2f}"),
    ("area: entropy finds them", f"{ORACLE}entropy_auc", "first", "{:.2f}"),
    ("area: p(1-p) finds them", f"{ORACLE}predictive_variance_auc", "first", "{:.2f}"),
    ("cosine of flat with true credit", f"{ORACLE}GRPO_cosine", "first", "{:.2f}"),
)
"""Of the table: title, metric, which value of a run, and how it is written."""

Row = dict[str, str]


def summarise_test_policy_runs(database: Path) -> list[Row]:
    """Return the first and the last value of every finished run of an organism."""
    wanted = {metric for _, metric, _, _ in LINES}
    rows = [
        {"organism": each.condition, "seed": str(each.seed), "metric": each.metric, "steps": str(max(each.values))}
        | {"first": f"{each.values[min(each.values)]:.6g}", "last": f"{each.values[max(each.values)]:.6g}"}
        for each in read_logged_metrics(database, wanted.__contains__)
        if each.condition in list_policy_names()
    ]
    return sorted(rows, key=lambda row: (list_policy_names().index(row["organism"]), row["metric"], int(row["seed"])))


def render_test_policy_table(rows: Sequence[Row]) -> str:
    """Return a table in Markdown: a column per organism, means over seeds."""
    organisms = list(dict.fromkeys(row["organism"] for row in rows))
    lines = [
        [title, *(render_test_policy_cell(rows, organism, metric, end, form) for organism in organisms)]
        for title, metric, end, form in LINES
    ]
    return Table(["", *organisms], lines).to_markdown()


def render_test_policy_cell(rows: Sequence[Row], organism: str, metric: str, end: str, form: str) -> str:
    """Write the mean over seeds of a quantity of an organism."""
    found = [float(row[end]) for row in rows if (row["organism"], row["metric"]) == (organism, metric)]
    return form.format(np.mean(found)) if found else ""


def main() -> None:
    """Copy values out of a database, or print the table of what was copied."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="MLflow database, or CSV file")
    parser.add_argument("--out", type=Path, default=None, help="CSV file")
    args = parser.parse_args()
    rows = (
        csv_rows.read_csv_rows(args.source) if args.source.suffix == ".csv" else summarise_test_policy_runs(args.source)
    )
    if not rows:
        parser.error(f"no finished run of {args.source} is of {', '.join(list_policy_names())}.")
    if args.out is not None:
        csv_rows.write_csv_rows(args.out, rows)
    print(render_test_policy_table(rows))


if __name__ == "__main__":
    main()
