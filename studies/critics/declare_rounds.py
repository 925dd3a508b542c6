"""Choose batch and learning rate of every kind of credit at equal tokens, in rounds, and declare what compares them.

python -m docs.studies.equal_tokens.declare_rounds batch_rates
python -m docs.studies.equal_tokens.declare_rounds batch_rates --repeat batch_rates_2 --first-seed 404 --seeds 2
ROUNDS="batch_rates batch_rates_2"
python -m docs.studies.equal_tokens.declare_rounds $ROUNDS --compare NAME --kinds ... --first-seed 500 --seeds 8

The first round tries a few settings of every kind on one seed. A kind that is more than five points of area behind flat
credit, each at its best, is stopped. Flat credit and the two best others have a second round on further seeds: their
best setting, the same one at twice and at half the rate, and half the prompts at half the rate. Chosen is the setting
with the highest mean area under the held-out curve, of those that the last round has tried, on the seeds that all of
them have; of equal ones the one with fewer prompts and the lower rate. Conditions are called NAME_pPROMPTS_xFACTOR, or
NAME_xFACTOR where prompts were not varied, and flat credit ``flat``; the results lie in docs/results.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import yaml
from docs.numbers import CAMPAIGNS, measure_run_areas, read_results
from docs.studies.headline.choose_rates import factor_value

from rlcredit.base.files import write_atomically
from rlcredit.campaign.declaration import CampaignDeclaration, read_declaration
from rlcredit.pages.tables import Table
from rlcredit.report.condition_comparison import FEWEST

FLAT = "flat"
"""Name of the kind that the others are measured by."""

STOPPED = 0.05
"""Area by which a kind may be behind flat credit after the first round."""

REPEATED = 2
"""Kinds that have a second round beside flat credit."""

CONDITION = re.compile(r"(?P<kind>.+?)(?:_p(?P<prompts>\d+))?_x(?P<factor>\d+)$")


class Setting(NamedTuple):
    """Hold what was tried of a kind of credit.

    Args:
        prompts: Prompts a step; 0 where they were not varied.
        factor: Learning rate at the start, in multiples of the usual one.

    """

    prompts: int
    factor: float

    def __str__(self) -> str:
        prompts = f"{self.prompts} prompt{'s' * (self.prompts > 1)}, " if self.prompts else ""
        return f"{prompts}x {self.factor:g}"


Areas = Mapping[str, Mapping[Setting, Mapping[int, float]]]
Files = tuple[str, ...]


def parse_condition(condition: str) -> tuple[str, Setting]:
    """Return the kind of credit and the setting that a condition is named by.

    Raises:
        ValueError: the name is not of this form.

    Example:
        >>> parse_condition("measured_4_p2_x05")
        ('measured_4', Setting(prompts=2, factor=0.5))

    """
    if not (found := CONDITION.match(condition)):
        raise ValueError(f"{condition}: a condition of a grid is called NAME_pPROMPTS_xFACTOR, as flat_p4_x05.")
    return found["kind"], Setting(int(found["prompts"] or 0), factor_value(found["factor"]))


def name_condition(kind: str, setting: Setting) -> str:
    """Return the name of a condition; the opposite of ``parse_condition``.

    Example:
        >>> name_condition("flat", Setting(4, 0.5))
        'flat_p4_x05'

    """
    prompts = f"_p{setting.prompts}" if setting.prompts else ""
    return f"{kind}{prompts}_x{setting.factor:g}".replace(".", "")


def read_areas(campaigns: Sequence[str]) -> dict[str, dict[Setting, dict[int, float]]]:
    """Return the area under the held-out curve of every run, by kind of credit, setting, and seed."""
    areas: dict[str, dict[Setting, dict[int, float]]] = {}
    for campaign in campaigns:
        for (condition, seed), area in measure_run_areas(read_results(f"{campaign}/runs"), "budget").items():
            kind, setting = parse_condition(condition)
            areas.setdefault(kind, {}).setdefault(setting, {})[seed] = area
    return areas


def find_shared_seeds(settings: Mapping[Setting, Mapping[int, float]]) -> tuple[list[Setting], list[int]]:
    """Return the settings that the last round has tried, and the seeds that all of them have."""
    last = max(seed for runs in settings.values() for seed in runs)
    tried = sorted(setting for setting, runs in settings.items() if last in runs)
    return tried, sorted(set.intersection(*(set(settings[setting]) for setting in tried)))


def measure_setting(settings: Mapping[Setting, Mapping[int, float]], setting: Setting) -> float:
    """Return the mean area of a setting on the seeds that those of the last round share."""
    return float(np.mean([settings[setting][seed] for seed in find_shared_seeds(settings)[1]]))


def choose_setting(settings: Mapping[Setting, Mapping[int, float]]) -> Setting:
    """Return the setting of a kind with the highest mean area; of equal ones the first."""
    return max(find_shared_seeds(settings)[0], key=lambda setting: measure_setting(settings, setting))


def describe_doubts(kind: str, settings: Mapping[Setting, Mapping[int, float]]) -> list[str]:
    """Return a sentence where the chosen setting lies at an end of what was tried."""
    best = choose_setting(settings)
    prompts = {setting.prompts for setting in settings}
    rates = {setting.factor for setting in settings if setting.prompts == best.prompts}
    ends = {
        "fewer prompts": len(prompts) > 1 and best.prompts == min(prompts),
        "another rate": len(rates) == 1,
        "a lower rate": len(rates) > 1 and best.factor == min(rates),
        "a higher rate": len(rates) > 1 and best.factor == max(rates),
    }
    further = " or ".join(better for better, is_end in ends.items() if is_end)
    return [f"{kind}: {best} is at the end of what was tried; {further} may be better."] if further else []


def measure_distances(areas: Areas) -> dict[str, float]:
    """Return by how much area every other kind is behind flat credit, each at its best setting, the best kind first."""
    heights = {kind: measure_setting(settings, choose_setting(settings)) for kind, settings in areas.items()}
    distances = {kind: heights[FLAT] - height for kind, height in heights.items() if kind != FLAT}
    return dict(sorted(distances.items(), key=lambda one: one[1]))


def find_stopped_kinds(areas: Areas) -> dict[str, float]:
    """Return the kinds that the first round stops, and by how much area each is behind flat credit."""
    return {kind: behind for kind, behind in measure_distances(areas).items() if behind > STOPPED}


def render_area_table(areas: Areas) -> str:
    """Return a table in Markdown: a line per kind, a column per setting, the chosen one in bold."""
    columns = sorted(
        {setting for settings in areas.values() for setting in settings}, key=lambda one: (-one[0], one[1])
    )
    lines = []
    for kind, settings in areas.items():
        best = choose_setting(settings)
        cells = {setting: f"{np.mean(list(runs.values())):.3f} ({len(runs)})" for setting, runs in settings.items()}
        lines.append([kind, *(f"**{cells[each]}**" if each == best else cells.get(each, "") for each in columns)])
    return Table(["credit", *map(str, columns)], lines).to_markdown()


def find_setting_files(setting: Setting) -> Files:
    """Return the files that set the prompts of a step and a rate that falls from so many times the usual one."""
    factor = f"{setting.factor:g}".replace(".", "")
    return (f"configs/batches/p{setting.prompts}.yaml", "configs/rates/falling.yaml", f"configs/rates/x{factor}.yaml")


def list_kind_files(tuned: CampaignDeclaration) -> dict[str, str]:
    """Return the file of every kind of credit."""
    return {parse_condition(condition)[0]: files[0] for condition, files in tuned.conditions.items()}


def select_repeated(tuned: CampaignDeclaration, areas: Areas) -> dict[str, Files]:
    """Return the conditions of the second round, by the areas of the first."""
    kinds, files = [FLAT, *list(measure_distances(areas))[:REPEATED]], list_kind_files(tuned)
    selected = {}
    for kind in kinds:
        best = choose_setting(areas[kind])
        rates = [best._replace(factor=times * best.factor) for times in (0.5, 1, 2)]
        for setting in (*rates, Setting(best.prompts // 2, best.factor / 2)):
            selected[name_condition(kind, setting)] = (files[kind], *find_setting_files(setting))
    return selected


def select_best(
    tuned: CampaignDeclaration, areas: Areas, kinds: Sequence[str], setting: Setting | None = None
) -> dict[str, Files]:
    """Return the conditions of a comparison: every kind that is named, at its setting, or all at the one given."""
    files = list_kind_files(tuned)
    return {kind: (files[kind], *find_setting_files(setting or choose_setting(areas[kind]))) for kind in kinds}


def declare_campaign(
    tuned: CampaignDeclaration, name: str, conditions: Mapping[str, Files], seeds: Sequence[int], baseline: str
) -> dict[str, Any]:
    """Return a campaign with the budget, questions and settings of the first round.

    Raises:
        ValueError: seeds that had a part in the first round.

    """
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


def main() -> None:
    """Print the areas, what is doubtful and what is stopped; write a declaration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", nargs="+", help="campaigns that have tried settings, the first round first")
    parser.add_argument("--repeat", metavar="NAME", help="declare the second round under this name")
    parser.add_argument("--compare", metavar="NAME", help="declare a comparison under this name")
    parser.add_argument(
        "--kinds", nargs="+", metavar="KIND", default=[FLAT], help="what is compared, the baseline first"
    )
    parser.add_argument("--setting", nargs=2, metavar=("PROMPTS", "RATE"), help="setting of all, if not their best")
    parser.add_argument("--configs", nargs="+", metavar="FILE", help="policy and task of the comparison, if others")
    parser.add_argument("--tokens", type=int, help="decoded tokens of a run, if others than in the first round")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=0, help="number of seeds of what is declared")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    tuned, areas = read_declaration(CAMPAIGNS / f"{args.rounds[0]}.yaml"), read_areas(args.rounds)
    print(render_area_table(areas))
    for kind, settings in areas.items():
        for sentence in describe_doubts(kind, settings):
            print(f"- {sentence}")
    for kind, behind in find_stopped_kinds(read_areas(args.rounds[:1])).items():
        print(f"- {kind} is stopped: {100 * behind:.1f} points of area behind flat credit.")
    if args.repeat:
        conditions, name = select_repeated(tuned, areas), args.repeat
        title = "Settings of flat credit and of the two best other kinds, on further seeds."
    elif args.compare:
        setting = Setting(int(args.setting[0]), float(args.setting[1])) if args.setting else None
        conditions, name = select_best(tuned, areas, args.kinds, setting), args.compare
        chosen = f"all at {setting}, falling" if setting else "each at its best batch and rate"
        title = f"Kinds of credit at equal decoded tokens, {chosen}."
    else:
        return
    plan = declare_campaign(tuned, name, conditions, seeds, next(iter(conditions)))
    if args.configs:
        plan["configs"] = args.configs
    if args.tokens:
        plan["budget"] |= {next(iter(plan["budget"])): args.tokens}
    path = CAMPAIGNS / f"{name}.yaml"
    head = f"# {title}  rlcredit campaign configs/campaigns/{name}.yaml\n"
    how = f"# Written by docs/studies/equal_tokens/declare_rounds.py from {' and '.join(args.rounds)}.\n"
    write_atomically(path, head + how + yaml.safe_dump(plan, sort_keys=False, width=160))


if __name__ == "__main__":
    main()
