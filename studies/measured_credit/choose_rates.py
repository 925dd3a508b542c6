"""Choose every condition's learning rate from a campaign of a grid, and declare the comparison with these rates.

rlcredit report studies/measured_credit/campaigns/headline_rates.yaml
TUNED="studies/measured_credit/campaigns/headline_rates.yaml campaigns/headline_rates/report"
python -m studies.measured_credit.choose_rates $TUNED
python -m studies.measured_credit.choose_rates $TUNED --out studies/measured_credit/campaigns/headline_best.yaml

Conditions of the grid are called NAME_xFACTOR. Chosen is the factor with the highest mean of the primary metric after
the last step, of equal ones the lower. What is declared has seeds of its own: those of the choice would flatter it.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml

from rlcredit.base.files import write_atomically
from rlcredit.campaign.declaration import CampaignDeclaration, read_declaration
from rlcredit.pages.tables import Table
from rlcredit.statistics.grid_choice import choose_grid_value
from studies import csv_rows

DECAY = "configs/rates/linear_decay.yaml"
DECAYED = ("flat", "measured")
"""Conditions that are compared under a rate that falls as well."""

Grid = Mapping[str, Mapping[str, tuple[str, ...]]]
Ends = Mapping[str, float]


def group_conditions_by_factor(declaration: CampaignDeclaration) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the files of every condition of a grid, by name and by factor, lower ones first."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for condition, files in declaration.conditions.items():
        name, mark, factor = condition.rpartition("_x")
        if not mark or not factor.isdigit():
            raise ValueError(f"{condition}: a condition of a grid is called NAME_xFACTOR, as flat_x05.")
        found.setdefault(name, {})[factor] = files
    return {name: dict(sorted(files.items(), key=lambda one: factor_value(one[0]))) for name, files in found.items()}


def factor_value(factor: str) -> float:
    """Return a factor as a number: 05 is a half.

    Example:
        >>> factor_value("05"), factor_value("2"), factor_value("10")
        (0.5, 2.0, 10.0)

    """
    return float(f"0.{factor[1:]}" if factor.startswith("0") else factor)


def read_final_values(folder: Path, metric: str, steps: int) -> dict[str, list[float]]:
    """Return a metric of every run after the last step, by condition and in the order of the seeds."""
    found: dict[str, dict[int, float]] = {}
    for row in csv_rows.read_csv_rows(folder / "runs.csv"):
        if int(row["step"]) == steps:
            found.setdefault(row["condition"], {})[int(row["seed"])] = float(row[metric])
    return {condition: [values[seed] for seed in sorted(values)] for condition, values in found.items()}


def read_final_means(folder: Path, metric: str, steps: int) -> dict[str, float]:
    """Return the mean over seeds of a metric after the last step, by condition."""
    return {name: float(np.mean(values)) for name, values in read_final_values(folder, metric, steps).items()}


def describe_rate_doubts(conditions: Grid, ended: Mapping[str, Sequence[float]]) -> list[str]:
    """Return where the best rate lies at the end of its grid, or is tied with another.

    Args:
        conditions: Conditions of the grid.
        ended: Metric of every run after the last step, by condition.

    """
    sentences = []
    for name, factors in conditions.items():
        results = {factor_value(factor): ended[f"{name}_x{factor}"] for factor in factors}
        sentences += choose_grid_value(results).describe_doubts(name)
    return sentences


def choose_best_factor(factors: Mapping[str, tuple[str, ...]], name: str, ended: Ends) -> str:
    """Return the factor with which a condition ends best, of equal ones the lowest."""
    return max(factors, key=lambda factor: (ended[f"{name}_x{factor}"], -factor_value(factor)))


def render_rate_table(conditions: Grid, ended: Ends) -> str:
    """Return a table in Markdown: a line per condition, a column per factor, the chosen one in bold."""
    columns = list(dict.fromkeys(factor for factors in conditions.values() for factor in factors))
    rows = []
    for name, factors in conditions.items():
        chosen = choose_best_factor(factors, name, ended)
        cells = {factor: f"{ended[f'{name}_x{factor}']:.3f}" for factor in factors}
        rows.append([name, *(f"**{cells[each]}**" if each == chosen else cells.get(each, "") for each in columns)])
    return Table(["condition", *(f"x {factor_value(factor):g}" for factor in columns)], rows).to_markdown()


def declare_tuned_comparison(
    tuned: CampaignDeclaration, conditions: Grid, ended: Ends, seeds: range
) -> dict[str, object]:
    """Return the campaign in which every condition has its rate, and some of them also one that falls from it."""
    if overlap := {*seeds} & {*tuned.seeds}:
        raise ValueError(f"seeds {sorted(overlap)} had a part in the choice of rates. Take others.")
    chosen = {name: [*factors[choose_best_factor(factors, name, ended)]] for name, factors in conditions.items()}
    decayed = {f"{name}_decayed": [*chosen[name], DECAY] for name in DECAYED}
    baseline, quarter = tuned.baseline.rpartition("_x")[0], tuned.end // 4
    others = [name for name in chosen if name != baseline]
    return {
        "name": tuned.name.removesuffix("_rates") + "_best",
        "configs": [*tuned.configs],
        "conditions": chosen | decayed,
        "baseline": baseline,
        "families": {
            "each at its best rate": {"baseline": baseline, "conditions": others},
            "a rate that falls": {"baseline": f"{baseline}_decayed", "conditions": [*decayed][1:]},
        },
        "seeds": [*seeds],
        "steps": tuned.steps,
        "primary": tuned.primary,
        "effect": tuned.effect,
        "settings": {"trainer.val_check_interval": quarter, "checkpoint.every_n_train_steps": quarter},
    }


def main() -> None:
    """Print the table of the grid; write the declaration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", type=Path, help="declaration of the grid")
    parser.add_argument("results", type=Path, help="folder with its runs.csv")
    parser.add_argument("--out", type=Path, default=None, help="declaration of the comparison")
    parser.add_argument("--first-seed", type=int, default=300)
    parser.add_argument("--pairs", type=int, default=8)
    args = parser.parse_args()
    tuned = read_declaration(args.campaign)
    conditions, ended = group_conditions_by_factor(tuned), read_final_means(args.results, tuned.primary, tuned.end)
    print(render_rate_table(conditions, ended))
    for sentence in describe_rate_doubts(conditions, read_final_values(args.results, tuned.primary, tuned.end)):
        print(f"- {sentence}")
    if args.out is not None:
        plan = declare_tuned_comparison(tuned, conditions, ended, range(args.first_seed, args.first_seed + args.pairs))
        head = f"# Every kind of credit at its own best rate.  rlcredit campaign {args.out}\n"
        how = f"# Written by studies/measured_credit/choose_rates.py from {args.results}.\n"
        write_atomically(args.out, head + how + yaml.safe_dump(plan, sort_keys=False, width=160))


if __name__ == "__main__":
    main()
