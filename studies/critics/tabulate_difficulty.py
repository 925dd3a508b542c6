"""Tabulate what a campaign's runs learn on questions that were hard, middling or easy before training.

TABLE=docs/results/hard_questions/difficulty.csv
python -m docs.studies.equal_tokens.tabulate_difficulty campaigns/hard_questions --out $TABLE
python -m docs.studies.equal_tokens.tabulate_difficulty $TABLE

A question's level is how many of its answers were right in the evaluation before the first step. That evaluation is the
same in all runs of a seed, and so are the levels. Differences from the baseline are paired by seed, with Student's
interval.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import csv_rows
import numpy as np
from docs.numbers import Estimate, Rows, format_estimate, student_estimate

from rlcredit.pages.tables import Table
from rlcredit.report.evidence import FinishedRun, read_campaign_evidence

LEVELS = {"hard": 0.25, "middling": 0.75, "easy": 1.0}
"""The largest share of a question's answers that were right before training, level by level."""

COLUMNS = ("pass_at_1", "pass_at_k")


def find_level(right: int, answers: int) -> str:
    """Return the level of a question with so many right answers before training.

    Example:
        >>> [find_level(right, 8) for right in (0, 2, 3, 6, 7)]
        ['hard', 'hard', 'middling', 'middling', 'easy']

    """
    return next(level for level, most in LEVELS.items() if right <= most * answers)


def split_by_level(run: FinishedRun) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield every level with the verdicts of its questions before and after a run, shapes ``(Q, S)``."""
    before, after = run.right[min(run.right)], run.right[max(run.right)]
    levels = np.array([find_level(int(right), before.shape[1]) for right in before.sum(-1)])
    yield from ((level, before[levels == level], after[levels == level]) for level in LEVELS)


def tabulate_runs(folder: Path) -> Iterator[dict[str, str]]:
    """Yield a row for every run of a campaign and level of questions."""
    evidence = read_campaign_evidence(folder)
    for run in evidence.runs.values():
        for level, before, after in split_by_level(run):
            values = {"before": before.mean(), "pass_at_1": after.mean(), "pass_at_k": after.any(-1).mean()}
            yield {
                "condition": run.condition,
                "seed": str(run.seed),
                "level": level,
                "questions": str(len(after)),
                **{name: f"{value:.6g}" for name, value in values.items()},
            }


def read_values(rows: Rows, condition: str, level: str, column: str) -> np.ndarray:
    """Return a column of a condition's runs on the questions of a level, in the order of the seeds."""
    own = [row for row in rows if (row["condition"], row["level"]) == (condition, level)]
    return np.array([float(row[column]) for row in sorted(own, key=lambda row: int(row["seed"]))])


def estimate_level_lead(rows: Rows, condition: str, level: str, column: str, baseline: str) -> Estimate:
    """Return by how many points a condition is ahead of a baseline on the questions of a level."""
    own, base = (read_values(rows, each, level, column) for each in (condition, baseline))
    return student_estimate(100 * (own - base))


def list_conditions(rows: Rows) -> list[str]:
    """Return the conditions of a table in the order of their first rows, the baseline first."""
    return [*dict.fromkeys(row["condition"] for row in rows)]


def render_difficulty_table(rows: Rows) -> str:
    """Return a table in Markdown: a line for every level and condition."""
    baseline, *others = list_conditions(rows)
    lines = []
    for level in LEVELS:
        count, before = (read_values(rows, baseline, level, name).mean() for name in ("questions", "before"))
        means = [f"{read_values(rows, baseline, level, column).mean():.3f}" for column in COLUMNS]
        lines.append([f"{level} ({count:.0f} questions, {before:.2f} before)", baseline, *means])
        for other in others:
            leads = [estimate_level_lead(rows, other, level, column, baseline) for column in COLUMNS]
            lines.append(["", other, *(format_estimate(lead, sign=True) for lead in leads)])
    return Table(["before training", "condition", "pass@1", "pass@8"], lines).to_markdown()


def main(words: Sequence[str] | None = None) -> None:
    """Count a campaign's verdicts by level, or print the table of what was counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of a campaign, or CSV file")
    parser.add_argument("--out", type=Path, default=None, help="CSV file")
    args = parser.parse_args(words)
    rows = csv_rows.read_csv_rows(args.source) if args.source.is_file() else list(tabulate_runs(args.source))
    if args.out is not None:
        csv_rows.write_csv_rows(args.out, rows)
    print(render_difficulty_table(rows))


if __name__ == "__main__":
    main()
