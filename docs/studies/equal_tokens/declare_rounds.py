"""Choose the learning rate of every kind of credit at equal tokens, in two rounds, and declare what compares them.

python -m docs.studies.equal_tokens.declare_rounds critic_rates
python -m docs.studies.equal_tokens.declare_rounds critic_rates --repeat critic_rates_2 --first-seed 401 --seeds 2
ROUNDS="critic_rates critic_rates_2"
python -m docs.studies.equal_tokens.declare_rounds $ROUNDS --compare critics_best --first-seed 500 --seeds 8

The first round tries all rates of the grid on few seeds, the second the two best rates of each kind on further ones; of
a kind whose best rate is the highest of the grid, that one and twice it. A kind that is more than five points of area
behind flat credit, each at its best rate, is stopped; after the first round not one whose best rate is the highest of
the grid. Chosen is the rate with the highest mean area under the held-out curve, of those that the last round has
tried, on the seeds that all of them have; of equal ones the lower. Conditions are called NAME_xFACTOR, and flat credit
``flat``; the results lie in docs/results.
"""

import argparse
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from docs.numbers import CAMPAIGNS, measure_run_areas, read_results
from docs.studies.headline.choose_rates import factor_value, group_conditions_by_factor
from rlcredit.base.files import write_atomically
from rlcredit.campaign.declaration import CampaignDeclaration, read_declaration
from rlcredit.pages.tables import Table
from rlcredit.report.condition_comparison import FEWEST
from rlcredit.statistics.grid_choice import GridChoice, choose_grid_value

FLAT = "flat"
"""Name of the kind that the others are measured by."""

STOPPED = 0.05
"""Area by which a kind may be behind flat credit after the first round."""

Areas = Mapping[str, Mapping[float, Mapping[int, float]]]


def read_areas(campaigns: Sequence[str]) -> dict[str, dict[float, dict[int, float]]]:
    """Return the area under the held-out curve of every run, by kind of credit, factor of the rate, and seed."""
    areas: dict[str, dict[float, dict[int, float]]] = {}
    for campaign in campaigns:
        for (condition, seed), area in measure_run_areas(read_results(f"{campaign}/runs"), "budget").items():
            name, _, factor = condition.rpartition("_x")
            areas.setdefault(name, {}).setdefault(factor_value(factor), {})[seed] = area
    return areas


def rank_rates(rates: Mapping[float, Mapping[int, float]]) -> list[float]:
    """Return the factors of a kind from the best to the worst, of equal ones the lower first."""
    return sorted(rates, key=lambda factor: (-np.mean(list(rates[factor].values())), factor))


def find_shared_seeds(rates: Mapping[float, Mapping[int, float]]) -> tuple[list[float], list[int]]:
    """Return the factors that the last round has tried, and the seeds that all of them have."""
    last = max(seed for runs in rates.values() for seed in runs)
    factors = sorted(factor for factor, runs in rates.items() if last in runs)
    return factors, sorted(set.intersection(*(set(rates[factor]) for factor in factors)))


def choose_rates(areas: Areas) -> dict[str, GridChoice]:
    """Return the rate of every kind, and what is doubtful about it."""
    chosen = {}
    for name, rates in areas.items():
        factors, seeds = find_shared_seeds(rates)
        chosen[name] = choose_grid_value({factor: [rates[factor][seed] for seed in seeds] for factor in factors})
    return chosen


def find_stopped_kinds(areas: Areas, spare_highest: bool) -> dict[str, float]:
    """Return the kinds that are stopped, and by how much area each is behind flat credit, both at their best.

    Args:
        areas: Area of every run.
        spare_highest: Whether a kind goes on whose best rate is the highest that was tried.

    """
    choices, stopped = choose_rates(areas), {}
    flat = areas[FLAT][choices[FLAT].best]
    for name, rates in areas.items():
        best, (_, seeds) = choices[name].best, find_shared_seeds(rates)
        behind = float(np.mean([flat[seed] - rates[best][seed] for seed in seeds]))
        if behind > STOPPED and not (spare_highest and best == max(rates)):
            stopped[name] = behind
    return stopped


def find_all_stopped(rounds: Sequence[str]) -> dict[str, float]:
    """Return the kinds that the first round stops, and those that all rounds together do; see the rule above."""
    stopped = find_stopped_kinds(read_areas(rounds[:1]), spare_highest=True)
    return stopped if len(rounds) == 1 else find_stopped_kinds(read_areas(rounds), spare_highest=False) | stopped


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


def name_factor(factor: float) -> str:
    """Return a factor as conditions and files are named by it; the opposite of ``factor_value``.

    Example:
        >>> name_factor(0.5), name_factor(2.0)
        ('05', '2')

    """
    return f"{factor:g}".replace(".", "")


def find_rate_file(factor: float) -> str:
    """Return the file that sets the learning rate to so many times the usual one."""
    return f"configs/rates/x{name_factor(factor)}.yaml"


def list_files_but_rates(tuned: CampaignDeclaration) -> dict[str, tuple[str, ...]]:
    """Return the files of every kind of credit without the last one, which sets its rate."""
    return {name: next(iter(grid.values()))[:-1] for name, grid in group_conditions_by_factor(tuned).items()}


def select_repeated(tuned: CampaignDeclaration, areas: Areas) -> dict[str, tuple[str, ...]]:
    """Return the conditions of the second round: two rates of every kind that goes on, by the areas of the first."""
    stopped, selected = find_stopped_kinds(areas, spare_highest=True), {}
    for name, files in list_files_but_rates(tuned).items():
        if name not in stopped:
            best, second = rank_rates(areas[name])[:2]
            for factor in sorted([best, 2 * best if best == max(areas[name]) else second]):
                selected[f"{name}_x{name_factor(factor)}"] = (*files, find_rate_file(factor))
    return selected


def select_best(tuned: CampaignDeclaration, areas: Areas, stopped: Container[str]) -> dict[str, tuple[str, ...]]:
    """Return the conditions of the comparison: every kind that goes on, at its rate."""
    choices = choose_rates(areas)
    return {
        name: (*files, find_rate_file(choices[name].best))
        for name, files in list_files_but_rates(tuned).items()
        if name not in stopped
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
    stopped = find_all_stopped(args.rounds)
    for name, behind in stopped.items():
        print(f"- {name} is stopped: {100 * behind:.1f} points of area behind flat credit.")
    if args.repeat:
        conditions, name = select_repeated(tuned, areas), args.repeat
        plan = declare_campaign(tuned, name, conditions, seeds, next(iter(conditions)))
        title = "Two rates of each kind of credit, on further seeds."
    elif args.compare:
        conditions, name = select_best(tuned, areas, stopped), args.compare
        plan = declare_campaign(tuned, name, conditions, seeds, FLAT)
        title = "Every kind of credit at its own best rate, at equal decoded tokens."
    else:
        return
    path = CAMPAIGNS / f"{name}.yaml"
    head = f"# {title}  rlcredit campaign configs/campaigns/{name}.yaml\n"
    how = f"# Written by docs/studies/equal_tokens/declare_rounds.py from {' and '.join(args.rounds)}.\n"
    write_atomically(path, head + how + yaml.safe_dump(plan, sort_keys=False, width=160))


if __name__ == "__main__":
    main()
