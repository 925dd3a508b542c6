"""Declare the comparisons of credit between turns: rates on two seeds, then the comparison on eight others.

python -m studies.turns.declare_turns rates    # before any run
python -m studies.turns.declare_turns more     # once studies/turns/results has the reports of all campaigns of rates
python -m studies.turns.declare_turns main     # once it has those of further rates too

In every game each arm has the rate with the largest mean area over both seeds, of equal ones the lower. An arm whose
best rate is the lowest or the highest tries one beyond it. Nothing else is chosen: games, arms, budgets and comparisons
stand here before the first run.
"""

import argparse
from collections.abc import Mapping
from typing import Any, NamedTuple

from studies.rate_grids import (
    add_rate_files,
    choose_factors,
    list_further_conditions,
    list_rate_conditions,
    write_declaration,
)


class Game(NamedTuple):
    """Hold where credit is compared.

    Args:
        task: Configuration of the task, and name of the policy.
        environment: Environment in call form.
        tokens: Tokens that a run decodes and reads.

    """

    task: str
    environment: str
    tokens: int


GAMES = {
    "corridor_1": Game("corridor", "Corridor(rho=1, marks_mistakes=True)", 100_000),
    "corridor_4th": Game("corridor", "Corridor(rho=0.25, marks_mistakes=True)", 100_000),
    "corridor_16th": Game("corridor", "Corridor(rho=0.0625, marks_mistakes=True)", 100_000),
    "bisection": Game("bisection", "Bisection(numbers=63, turns=6)", 80_000),
    "running_sum": Game("running_sum", "RunningSum(terms=8)", 72_000),
}
"""Games by the ends of the names of their campaigns; in these corridors every place after a wrong key says so."""

HIDDEN_GAMES = {
    "hidden_1": Game("corridor", "Corridor(rho=1)", 0),
    "hidden_4th": Game("corridor", "Corridor(rho=0.25)", 0),
    "hidden_16th": Game("corridor", "Corridor(rho=0.0625)", 0),
}
"""Corridors in which nothing tells of a wrong key; credit is measured there, and nothing trained."""

ALL_GAMES = GAMES | HIDDEN_GAMES

ARMS = {
    "flat": "baselines/rloo.yaml",
    "reused": "losses/grpo_reused.yaml",
    "gigpo": "turns/gigpo.yaml",
    "state_values": "turns/state_values.yaml",
    "turn_returns_095": "turns/turn_returns_095.yaml",
    "turn_ppo": "turns/turn_ppo.yaml",
    "uncertain_turns": "turns/uncertain_turns.yaml",
    "random_turns": "turns/random_turns.yaml",
}
"""Condition of every arm; the games reward the last turn alone, so that MTGRPO and ScoreGains have nothing to add."""

ARM_FILES = {arm: [f"configs/conditions/{file}"] for arm, file in ARMS.items()}

CREDIT_ARMS = ("gigpo", "state_values", "turn_returns_095", "turn_ppo", "uncertain_turns")
"""Arms that give credit to turns and are no controls."""

FAMILIES = {
    "against flat credit": {"baseline": "flat", "conditions": [*ARMS][1:]},
    "against rollouts used twice": {"baseline": "reused", "conditions": [*CREDIT_ARMS]},
    "against random turns": {"baseline": "random_turns", "conditions": ["uncertain_turns"]},
}
RATES = (2, 4, 8)
"""Learning rates at the start, in multiples of the usual one."""

RATE_SEEDS, MAIN_SEEDS = range(100, 102), range(8)
PARTS_OF_RATES = ("turns_rates", "turns_rates_more")
EVALUATIONS = {"rates": 4, "main": 5}
"""Evaluations of a run after its start."""


def declare_comparison(part: str, game: str, conditions: Mapping[str, list[str]], **more: Any) -> dict[str, Any]:
    """Return the declaration of a campaign in a game, for a part of the study."""
    task, environment, tokens = GAMES[game]
    return {
        "configs": ["configs/turns.yaml", f"configs/tasks/{task}.yaml"],
        "conditions": dict(conditions),
        **more,
        "budget": {"rollout_tokens": tokens, "evaluations": EVALUATIONS[part]},
        "primary": "val/pass_at_1",
        "summary": "area",
        "effect": 0.02,
        "held_out": {"draws": "by_seed"},
        "settings": {
            "checkpoint.every_n_train_steps": 1000,
            "data.init_args.environment": environment,
            "data.init_args.prompts_per_step": 4,
            "data.init_args.validation_size": 128,
            "model.policy.path": f"organisms/{task}",
            "model.sampling.completions": 8,
            "model.validation.completions": 2,
            "model.pass_k": 2,
        },
    }


def declare_rates(game: str) -> dict[str, Any]:
    """Return the campaign that tries the rates of all arms in a game."""
    conditions = list_rate_conditions(ARM_FILES, RATES)
    plan = declare_comparison("rates", game, conditions, baseline="flat_x2", seeds=[*RATE_SEEDS], exploratory=True)
    return {"name": f"turns_rates_{game}", **plan}


def declare_further_rates(game: str) -> dict[str, Any]:
    """Return the campaign that tries a rate beyond those whose best was at an end."""
    conditions = list_further_conditions(ARM_FILES, RATES, f"turns_rates_{game}")
    choice = {"baseline": next(iter(conditions)), "seeds": [*RATE_SEEDS], "exploratory": True}
    return {"name": f"turns_rates_more_{game}", **declare_comparison("rates", game, conditions, **choice)}


def declare_main(game: str, factors: Mapping[str, float]) -> dict[str, Any]:
    """Return the comparison in a game, each arm at the rate that was chosen for it."""
    conditions = {arm: add_rate_files(files, factors[arm]) for arm, files in ARM_FILES.items()}
    plan = declare_comparison("main", game, conditions, baseline="flat", families=FAMILIES, seeds=[*MAIN_SEEDS])
    return {"name": f"turns_{game}", **plan}


def main() -> None:
    """Write the declarations of one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["rates", "more", "main"])
    part = parser.parse_args().part
    for game in GAMES:
        if part == "rates":
            write_declaration(__file__, declare_rates(game), "Learning rates of credit between turns, on two seeds.")
        elif part == "more":
            write_declaration(__file__, declare_further_rates(game), "Rates beyond those whose best was at an end.")
        else:
            title = "Credit between turns at equal tokens, decoded and read, each arm at its best rate."
            factors = choose_factors([f"{part}_{game}" for part in PARTS_OF_RATES])
            write_declaration(__file__, declare_main(game, factors), title)


if __name__ == "__main__":
    main()
