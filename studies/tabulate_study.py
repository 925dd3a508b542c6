"""Tabulate a study family by family, beside what the SEPA paper reports of the same contrast.

python -m docs.tabulate_study docs/results/tiny_study docs/results/published.csv

The folder holds the CSV files that ``rlcredit report`` wrote, and is called like the campaign.
"""

import argparse
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

import csv_rows
from docs.studies.published_tables.tabulate_published import MeasuredValues, read_published_runs

from rlcredit.campaign.metric_definition import list_metric_differences
from rlcredit.pages.number_formats import format_difference_interval, format_p_value, format_signed_points
from rlcredit.pages.tables import Table
from rlcredit.statistics.intervals import Interval
from rlcredit.statistics.t_test import welch_t_test

PAPER = {
    ("the paper's contrast", "c7_maxrl_hicra"): [("4B", "MaxRL, GTPO, HICRA")],
    ("the paper's contrast", "c8_maxrl_sepa"): [
        ("4B", "MaxRL, SEPA, GTPO"),
        ("4B, semantic detector", "MaxRL, SEPA, GTPO"),
        ("30B", "MaxRL, SEPA, GTPO"),
    ],
    ("masks", "entropy_mask_published"): [("4B, entropy mask", "MaxRL, mask")],
    ("signals", "maxrl_sepa_predictive_variance"): [("4B, signals", "predictive variance")],
}
"""The paper's results of a comparison: experiment and condition, by family and condition."""

HEADS = ("condition", "pass@1", "difference", "p", "equivalent, p", "verdict", "area")

Comparison = dict[str, str]
Columns = Mapping[str, Mapping[tuple[str, str], str]]
"""Columns behind the others, by title: cells by family and condition."""
Published = dict[tuple[str, str, str], MeasuredValues]


def format_difference(mean: float, low: float, high: float) -> str:
    """Write a difference of proportions with its interval, in percentage points."""
    return f"{format_signed_points(mean)} ({format_difference_interval(Interval(low, high, 0.95))})"


def format_published_difference(experiment: str, condition: str, paper: Published) -> str:
    """Write a difference of the paper with Welch's interval.

    Raises:
        ValueError: the paper's conditions are measured by different metrics.

    """
    ((base, (base_metric, base_values)),) = (
        (name, values) for (*key, name), values in paper.items() if key == [experiment, "baseline"]
    )
    metric, values = paper[experiment, "arm", condition]
    if reasons := list_metric_differences(metric, base_metric, (condition, base)):
        raise ValueError("; ".join(reasons))
    welch = welch_t_test(values, base_values)
    low, high, _ = welch.interval
    return f"{experiment}, against {base}: {format_difference(welch.difference, low, high)}"


def render_contrast_cells(comparison: Comparison) -> tuple[str, ...]:
    """Return the cells of one comparison that has all its pairs."""
    mean, low, high = (float(comparison[name]) for name in ("difference", "low", "high"))
    area = (float(comparison[f"area_{name}"]) for name in ("difference", "low", "high"))
    return (
        format_difference(mean, low, high),
        format_p_value(float(comparison["p_holm"])),
        format_p_value(float(comparison["p_equivalence_holm"])),
        comparison["verdict"],
        format_difference(*area),
    )


def render_family_table(
    name: str, comparisons: list[Comparison], solved: dict[str, float], paper: Published, more: Columns
) -> Iterator[str]:
    """Yield the table of one family, or why there is none."""
    reasons = [verdict for row in comparisons if (verdict := row["verdict"]).startswith(("open", "not compared"))]
    if reasons:
        yield f"{name}: {'; '.join(dict.fromkeys(reasons))}.\n"
        return
    baseline = comparisons[0]["baseline"]
    paper_arms = [PAPER.get((name, comparison["condition"]), []) for comparison in comparisons]
    heads = (*HEADS, "the paper") if any(paper_arms) else HEADS
    yield f"**{name}**, against `{baseline}` ({solved[baseline]:.3f})\n"
    rows = []
    for comparison, names_in_paper in zip(comparisons, paper_arms, strict=True):
        measured_cells = (
            comparison["condition"],
            f"{solved[comparison['condition']]:.3f}",
            *render_contrast_cells(comparison),
        )
        paper_cell = "; ".join(format_published_difference(*names, paper) for names in names_in_paper)
        further_cells = [cells[comparison["family"], comparison["condition"]] for cells in more.values()]
        rows.append([*(*measured_cells, paper_cell)[: len(heads)], *further_cells])
    yield Table([*heads, *more], rows).to_markdown() + "\n"


def render_study_tables(folder: Path, paper: Published, more: Columns | None = None) -> Iterator[str]:
    """Yield the tables of all families in Markdown; a campaign without families is one, called like the campaign.

    Args:
        folder: Folder with the CSV files of a report.
        paper: Values that the SEPA paper reports.
        more: Further columns; none if None.

    """
    solved = {row["condition"]: float(row["pass_at_1"]) for row in csv_rows.read_csv_rows(folder / "conditions.csv")}
    for family, comparisons in groupby(csv_rows.read_csv_rows(folder / "comparisons.csv"), lambda row: row["family"]):
        name = folder.name if family == "all" else family
        yield from render_family_table(name, list(comparisons), solved, paper, more or {})


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("published", type=Path)
    args = parser.parse_args()
    print("\n".join(render_study_tables(args.folder, read_published_runs(args.published))).rstrip())


if __name__ == "__main__":
    main()
