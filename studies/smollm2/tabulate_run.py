"""Tabulate what a run says of its held-out questions, with the time that it took.

python -m studies.smollm2.tabulate_run runs/grpo-seed0 --out studies/smollm2/results/smollm2_run.csv
python -m studies.smollm2.tabulate_run studies/smollm2/results/smollm2_run.csv

Minutes are counted from the end of the first evaluation; intervals are over questions, 95 %.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rlcredit.pages.tables import Table
from rlcredit.run_folder.layout import RunFolder
from rlcredit.statistics.intervals import share_interval
from studies import csv_rows

METRICS = ("pass_at_1", "pass_at_k", "completion_length", "entropy", "no_answer")
HEADS = (
    "held out after",
    "minutes",
    "pass@1",
    "95 % interval",
    "pass@k",
    "tokens",
    "entropy, nats",
    "without an answer",
)

Row = dict[str, str]


def read_run_evaluations(folder: Path) -> Iterator[Row]:
    """Yield a row for every evaluation of a run."""
    run, began = RunFolder(folder), None
    for line in run.record.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        found = {name: entry.get("metrics", {}).get(f"val/{name}") for name in METRICS}
        if found["pass_at_1"] is None:
            continue
        began = began or entry["time"]
        right = json.loads(run.evaluation_file(entry["step"]).read_text(encoding="utf-8"))["right"]
        low, high, _ = share_interval(np.array(right).mean(-1))
        row = {"step": entry["step"], "minutes": (entry["time"] - began) / 60_000, **found, "low": low, "high": high}
        yield {name: f"{value:.6g}" for name, value in row.items()}


def render_run_table(rows: Sequence[Row]) -> str:
    """Return a table in Markdown with a line for every evaluation."""
    lines = []
    for row in rows:
        of = {name: float(value) for name, value in row.items()}
        cells = [
            f"{of[name]:.{digits}f}" for name, digits in (("pass_at_k", 3), ("completion_length", 1), ("entropy", 3))
        ]
        interval = f"{of['low']:.3f} to {of['high']:.3f}"
        shown = [f"{row['step']} steps", f"{of['minutes']:.1f}", f"{of['pass_at_1']:.3f}", interval, *cells]
        lines.append([*shown, f"{100 * of['no_answer']:.1f} %"])
    return Table(HEADS, lines).to_markdown()


def main() -> None:
    """Copy values out of a run, or print the table of what was copied."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of a run, or CSV file")
    parser.add_argument("--out", type=Path, default=None, help="CSV file")
    args = parser.parse_args()
    rows = (
        csv_rows.read_csv_rows(args.source) if args.source.suffix == ".csv" else list(read_run_evaluations(args.source))
    )
    if args.out is not None:
        csv_rows.write_csv_rows(args.out, rows)
    print(render_run_table(rows))


if __name__ == "__main__":
    main()
