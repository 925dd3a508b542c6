"""Choose the learning rate of every kind of credit at equal tokens, in two rounds, and declare what compares them.

python -m docs.studies.equal_tokens.declare_rounds critic_rates
python -m docs.studies.equal_tokens.declare_rounds critic_rates --repeat critic_rates_2 --first-seed 401 --seeds 2
ROUNDS="critic_rates critic_rates_2"
python -m docs.studies.equal_tokens.declare_rounds $ROUNDS --compare critics_best --first-seed 500 --seeds 8

The first round tries all rates of the grid on few seeds, the second the two best rates of each kind on further ones. A
kind whose best rate ends the first round more than five points of area behind flat credit at its own is stopped. Chosen
is the rate with the highest mean area under the held-out curve over all seeds that have tried it, of equal ones the
lower. Conditions are called NAME_xFACTOR, and flat credit ``flat``; the results lie in docs/results.
"""

import argparse
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from docs.numbers import CAMPAIGNS, PASS, read_results
from docs.studies.headline.choose_rates import factor_value, group_conditions_by_factor
from rlcredit.base.files import write_atomically
from rlcredit.campaign.declaration import CampaignDeclaration, read_declaration
from rlcredit.pages.tables import Table
from rlcredit.statistics.grid_choice import GridChoice, choose_grid_value
from rlcredit.statistics.run_aggregates import learning_curve_area

FLAT = "flat"
"""Name of the kind that the others are measured by."""

STOPPED = 0.05
"""Area by which a kind may be behind flat credit after the first round."""

REPEATED = 2
"""Rates of a kind that the second round tries again."""

FEWEST = 6
"""Seeds from which on a campaign can reach a verdict."""

Areas = Mapping[str, Mapping[float, Mapping[int, float]]]


def read_areas(campaigns: Sequence[str]) -> dict[str, dict[float, dict[int, float]]]:
    """Return the area under the held-out curve of every run, by kind of credit, factor of the rate, and seed."""
    curves: dict[tuple[str, float, int], dict[int, float]] = {}
    for campaign in campaigns:
        for row in read_results(f"{campaign}/runs"):
            name, _, factor = row["condition"].rpartition("_x")
            curve = curves.setdefault((name, factor_value(factor), int(row["seed"])), {})
            curve[int(row["budget"])] = float(row[PASS])
    areas: dict[str, dict[float, dict[int, float]]] = {}
    for (name, factor, seed), curve in curves.items():
        areas.setdefault(name, {}).setdefault(factor, {})[seed] = float(
            learning_curve_area(list(curve), list(curve.values()))
        )
    return areas


def rank_rates(rates: Mapping[float, Mapping[int, float]]) -> list[float]:
    """Return the factors of a kind from the best to the worst, of equal ones the lower first."""
    return sorted(rates, key=lambda factor: (-np.mean(list(rates[factor].values())), factor))


def find_stopped_kinds(areas: Areas) -> dict[str, float]:
    """Return the kinds that are stopped, and by how much area each is behind flat credit, both at their best."""
    best = {name: max(np.mean(list(runs.values())) for runs in rates.values()) for name, rates in areas.items()}
    return {name: float(best[FLAT] - area) for name, area in best.items() if best[FLAT] - area > STOPPED}


def choose_rates(areas: Areas) -> dict[str, GridChoice]:
    """Return the rate of every kind, among those that all its seeds have tried."""
    chosen = {}
    for name, rates in areas.items():
        seeds = max((set(runs) for runs in rates.values()), key=len)
        tried = {factor: [runs[seed] for seed in sorted(seeds)] for factor, runs in rates.items() if set(runs) == seeds}
        chosen[name] = choose_grid_value(tried)
    return chosen


def render_area_table(areas: Areas) -> str:
    """Return a table in Markdown: a line per kind, a column per factor, the best mean area in bold."""
    factors = sorted({factor for rates in areas.values() for factor in rates})
    lines = []
    for name, rates in areas.items():
        best = choose_rates({name: rates})[name].best
        cells = {factor: f"{np.mean(list(runs.values())):.3f} ({len(runs)})" for factor, runs in rates.items()}
        lines.append([name, *(f"**{cells[each]}**" if each == best else cells.get(each, "") for each in factors)])
    return Table(["credit", *(f"x {factor:g}" for factor in factors)], lines).to_markdown()


def declare_campaign(
    tuned: CampaignDeclaration, name: str, conditions: Mapping[str, Sequence[str]], seeds: Sequence[int], baseline: str
) -> dict[str, Any]:
    """Return a campaign with the budget, questions and settings of the first round."""
    if overlap := {*seeds} & {*tuned.seeds}:
        raise ValueError(f"seeds {sorted(overlap)} had a part in the first round. Take others.")
    exploratory = {"exploratory": True} if len(seeds) < FEWEST else {}
    assert tuned.budget is not None
    return {
        "name": name,
        "configs": [*tuned.configs],
        "conditions": {condition: [*files] for condition, files in conditions.items()},
        "baseline": baseline,
        "seeds": [*seeds],
        "budget": {tuned.budget.key: tuned.budget.tokens, "evaluations": tuned.budget.evaluations},
        "primary": tuned.primary,
        "summary": "area",
        "effect": tuned.effect,
        **exploratory,
        "held_out": {"questions": tuned.held_out.questions, "draws": tuned.held_out.draws},
        "settings": dict(tuned.settings),
    }


def select_repeated(tuned: CampaignDeclaration, areas: Areas) -> dict[str, tuple[str, ...]]:
    """Return the conditions of the second round: the best rates of every kind that goes on, by areas of the first."""
    grid, stopped = group_conditions_by_factor(tuned), find_stopped_kinds(areas)
    kept = {name: rank_rates(rates)[:REPEATED] for name, rates in areas.items() if name not in stopped}
    return {
        f"{name}_x{factor}": files
        for name, factors in kept.items()
        for factor, files in grid[name].items()
        if factor_value(factor) in factors
    }


def select_best(tuned: CampaignDeclaration, areas: Areas, stopped: Container[str]) -> dict[str, tuple[str, ...]]:
    """Return the conditions of the comparison: every kind that goes on, at its rate."""
    grid = group_conditions_by_factor(tuned)
    return {
        name: files
        for name, choice in choose_rates(areas).items()
        if name not in stopped
        for factor, files in grid[name].items()
        if factor_value(factor) == choice.best
    }


def main() -> None:
    """Print the areas, what is doubtful and what is stopped; write a declaration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", nargs="+", help="campaigns that have tried rates, the first round first")
    parser.add_argument("--repeat", metavar="NAME", help="declare the second round under this name")
    parser.add_argument("--compare", metavar="NAME", help="declare the comparison under this name")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=0, help="number of seeds of what is declared")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    tuned, areas = read_declaration(CAMPAIGNS / f"{args.rounds[0]}.yaml"), read_areas(args.rounds)
    print(render_area_table(areas))
    for name, choice in choose_rates(areas).items():
        for sentence in choice.describe_doubts(name):
            print(f"- {sentence}")
    stopped = find_stopped_kinds(read_areas(args.rounds[:1]))
    for name, behind in stopped.items():
        print(f"- {name} is stopped: {100 * behind:.1f} points of area behind flat credit.")
    if args.repeat:
        conditions, name = select_repeated(tuned, areas), args.repeat
        plan = declare_campaign(tuned, name, conditions, seeds, next(iter(conditions)))
        title = "The two best rates of each kind of credit, on further seeds."
    elif args.compare:
        conditions, name = select_best(tuned, areas, stopped), args.compare
        plan = declare_campaign(tuned, name, conditions, seeds, FLAT)
        title = "Every kind of credit at its own best rate, at equal decoded tokens."
    else:
        return
    path = CAMPAIGNS / f"{name}.yaml"
    head = f"# {title}  rlcredit campaign configs/campaigns/{name}.yaml\n"
    how = f"# Written by docs/studies/equal_tokens.declare_rounds.py from {' and '.join(args.rounds)}.\n"
    write_atomically(path, head + how + yaml.safe_dump(plan, sort_keys=False, width=160))


if __name__ == "__main__":
    main()
