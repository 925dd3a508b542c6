"""Tabulate and draw what probes measured in finished runs: the credit oracle beside whatever else the stack holds.

TABLE=studies/credit_patterns/results/oracle.csv
python -m studies.credit_patterns.tabulate_oracle values mlflow.db $TABLE
python -m studies.credit_patterns.tabulate_oracle tables $TABLE --condition oracle --picture oracle.png

``values`` copies what an MLflow database holds into a CSV file, one row per condition, seed, step and quantity; the
tables are made from that file.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlcredit.base.plot_style import ACCENT_COLOUR, INK_COLOUR, MUTED_COLOUR, SECOND_COLOUR, create_figure, style_axes
from rlcredit.pages.tables import Table
from studies import csv_rows
from studies.mlflow_metrics import LoggedMetric, read_logged_metrics

PREFIX = "probe/CreditOracle/"
DIAGNOSTICS = ("QuadrantStats", "PolarityMisalignment", "EntropyCollapse", "ZeroVariance", "DecisionPivots")
KEPT = (
    PREFIX,
    *(f"{kind}/{name}" for kind in ("credit", "probe") for name in DIAGNOSTICS),
    "credit/OutcomeAnchor",
)
OPPOSITE = ("opposite", "good_punished", "bad_rewarded")
PARTS = ("", *(f"_{part}_of_4" for part in range(1, 5)))
GENERAL = ("value", "fork_fraction", "credit_square", "error_square", "decoded_tokens")
NAMES = {"predictive_variance": "p(1-p)", "planning": "planning mask", "random": "chance"}
COLOURS = {"surprisal": ACCENT_COLOUR, "entropy": SECOND_COLOUR, "random": MUTED_COLOUR}

Curves = dict[str, dict[int, list[float]]]
"""Values of every seed by quantity and step."""


def read_oracle_values(database: Path) -> list[dict[str, Any]]:
    """Read the points of what is kept at the steps where the oracle measured, of all finished runs."""
    runs: dict[tuple[str, int], list[LoggedMetric]] = {}
    for each in read_logged_metrics(database, lambda name: name.startswith(KEPT)):
        runs.setdefault((each.condition, each.seed), []).append(each)
    rows = []
    for (condition, seed), found in runs.items():
        asked = {step for each in found if each.metric.startswith(PREFIX) for step in each.values}
        rows += [
            {
                "condition": condition,
                "seed": seed,
                "step": step,
                "quantity": each.metric,
                "value": float(f"{value:.6g}"),
            }
            for each in found
            for step, value in each.values.items()
            if step in asked
        ]
    return sorted(rows, key=lambda row: (row["condition"], row["seed"], row["quantity"], row["step"]))


def read_oracle_curves(path: Path, condition: str) -> Curves:
    """Read the values of one condition, of every seed."""
    histories = Curves()
    for row in csv_rows.read_csv_rows(path):
        if row["condition"] == condition:
            name = row["quantity"].removeprefix(PREFIX)
            histories.setdefault(name, {}).setdefault(int(row["step"]), []).append(float(row["value"]))
    return histories


def rank_measured_signals(histories: Curves, kind: str) -> list[str]:
    """Return the names of the scores of this kind, the best at the first step first."""
    names = [name.removesuffix(f"_{kind}") for name in histories if name.endswith(f"_{kind}")]
    return sorted(names, key=lambda name: -np.mean(next(iter(histories[f"{name}_{kind}"].values()))))


def render_signal_table(histories: Curves, names: list[str], kinds: list[str]) -> str:
    """Write one row per score, one column per step: means over seeds of one or more kinds."""
    steps = list(histories[f"{names[0]}_{kinds[0]}"])
    rows = []
    for name in names:
        cells = [" / ".join(f"{np.mean(histories[f'{name}_{kind}'][step]):.2f}" for kind in kinds) for step in steps]
        rows.append([NAMES.get(name, name), *cells])
    return Table(["", *(f"step {step}" for step in steps)], rows).to_markdown()


def space_out_labels(places: list[float], distance: float = 0.05) -> list[float]:
    """Move neighbours, in order, away from each other until labels at these places do not overlap."""
    moved = list(places)
    for _ in range(200):
        for low in range(len(moved) - 1):
            overlap = max(0.0, distance - (moved[low + 1] - moved[low])) / 2
            moved[low], moved[low + 1] = moved[low] - overlap, moved[low + 1] + overlap
    return moved


def draw_oracle_curves(histories: Curves, path: Path) -> None:
    """Draw how well every score finds the forks, the range of the seeds as a band."""
    figure = create_figure(10.5, 4.4)
    panels = {
        "auc": "Area under the curve for finding forks",
        "mass_20": "Share of the sum of A*² on the top 20 % of tokens",
    }
    steps = list(histories["value"])
    for axes, (kind, title) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        ends: list[tuple[float, str, str]] = []
        for name in rank_measured_signals(histories, kind):
            values = np.array(list(histories[f"{name}_{kind}"].values()))
            signal = name in {"surprisal", "entropy", "predictive_variance", "planning", "random"}
            colour, dashes = COLOURS.get(name, INK_COLOUR), "-" if signal else (0, (4, 2))
            axes.fill_between(steps, values.min(1), values.max(1), color=colour, alpha=0.10, linewidth=0)
            axes.plot(steps, values.mean(1), color=colour, linestyle=dashes, linewidth=1.8 if name in COLOURS else 1.1)
            label = NAMES.get(name, name if signal else f"credit after {name}")
            ends.append((values.mean(1)[-1], label, colour))
        ends.sort()
        for place, (_, label, colour) in zip(space_out_labels([value for value, _, _ in ends]), ends, strict=True):
            style: dict[str, Any] = {"color": colour, "fontsize": 8, "va": "center"}
            axes.annotate(label, (steps[-1], place), (6, 0), textcoords="offset points", **style)
        style_axes(axes, title)
        axes.set(xlabel="optimizer step", xlim=(steps[0], steps[-1] * 1.42), ylim=(0, 1.08))
        axes.set_xticks(steps)
    figure.savefig(path, dpi=150)


def render_means_table(histories: Curves, names: Sequence[str], digits: int = 3) -> str:
    """Write one row per quantity, one column per step: means over seeds."""
    steps = list(histories[names[0]])
    rows = []
    for name in names:
        cells = [f"{np.mean(histories[name][step]):.{digits}f}" if step in histories[name] else "-" for step in steps]
        rows.append([name, *cells])
    return Table(["", *(f"step {step}" for step in steps)], rows).to_markdown()


def render_oracle_tables(histories: Curves) -> Iterator[str]:
    """Yield the tables of a condition."""
    yield render_means_table(histories, GENERAL, 4)
    yield render_signal_table(histories, rank_measured_signals(histories, "auc"), ["auc", "mass_20"])
    yield render_signal_table(histories, rank_measured_signals(histories, "auc"), ["rank", "mass_10"])
    ledgers = rank_measured_signals(histories, "cosine_within")
    yield render_signal_table(histories, ledgers, ["cosine", "cosine_within"])
    yield render_means_table(histories, [f"{name}_{kind}" for name in ledgers for kind in OPPOSITE], 2)
    yield render_means_table(
        histories, [f"verdict_{kind}{part}" for part in PARTS for kind in ("information", "entropy")], 4
    )
    others = sorted(name for name in histories if name.startswith(KEPT))
    yield render_means_table(histories, others) if others else ""


def main() -> None:
    """Copy values out of a database, or print Markdown tables and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    copying = commands.add_parser("values")
    copying.add_argument("database", type=Path)
    copying.add_argument("out", type=Path)
    tabulating = commands.add_parser("tables")
    tabulating.add_argument("path", type=Path)
    tabulating.add_argument("--condition", default="oracle")
    tabulating.add_argument("--picture", type=Path, default=None)
    args = parser.parse_args()
    if args.command == "values":
        if not args.database.is_file():
            parser.error(f"there is no {args.database}.")
        rows = read_oracle_values(args.database)
        if not rows:
            parser.error(f"no finished run of {args.database} has a CreditOracle.")
        csv_rows.write_csv_rows(args.out, rows)
        return
    histories = read_oracle_curves(args.path, args.condition)
    if not histories:
        parser.error(f"{args.path} has no values of {args.condition}.")
    print("\n\n".join(render_oracle_tables(histories)))
    if args.picture is not None:
        draw_oracle_curves(histories, args.picture)


if __name__ == "__main__":
    main()
