"""Declare what might be worth adopting, each against rollouts used twice: three comparisons and the rates for them.

python -m studies.adoption.declare_adoption rates    # before any run but those of the candidates' cards
python -m studies.adoption.declare_adoption more     # once studies/adoption/results has the reports of all rates
python -m studies.adoption.declare_adoption main     # once it has those of further rates too

- ``sparse``: where success is rare, is a guarded critic, or one of the two candidates whose cards led most over the
  whole run, ahead of rollouts used twice?
- ``falls``: do runs of a critic fall because it credits groups of equal rewards?
- ``batches``: is the lead of rollouts used twice that of smaller batches?
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from studies.numbers import read_results
from studies.rate_grids import (
    Arms,
    add_rate_files,
    choose_factors,
    list_further_conditions,
    list_rate_conditions,
    write_declaration,
)

FLAT = "configs/conditions/sepa_paper/c1_grpo.yaml"
REUSED = "configs/conditions/losses/grpo_reused.yaml"
CRITIC = "studies/conditions/expected_gradient_reused.yaml"

CANDIDATES = {
    "answer_critic": "configs/conditions/critics/answer_critic.yaml",
    "redippo": "configs/conditions/critics/redippo.yaml",
    "vc_ppo": "configs/conditions/critics/vc_ppo.yaml",
    "lambda_returns": "configs/conditions/critics/lambda_returns.yaml",
    "sis_reused": "configs/conditions/losses/sis_reused.yaml",
    "self_distillation_reused": "studies/adoption/conditions/self_distillation_reused.yaml",
    "cscr_reused": "studies/adoption/conditions/cscr_reused.yaml",
    "opsa_reused": "studies/adoption/conditions/opsa_reused.yaml",
    "stride_reused": "studies/adoption/conditions/stride_reused.yaml",
}
"""Credit that decodes nothing, on rollouts used twice; the two best by their cards are arms of ``sparse``."""

HINT_READERS = ("self_distillation_reused", "cscr_reused")
"""Those of them that only *hinted* can try: it alone reads hints."""


class TrainedPolicy(NamedTuple):
    """Hold where arms are compared.

    Args:
        files: Configuration of the policy and its task.
        tokens: Tokens that a run decodes.

    """

    files: Sequence[str]
    tokens: int


POLICIES = {
    "long_chains": TrainedPolicy(["configs/organisms/long_chains.yaml"], 230_000),
    "delayed": TrainedPolicy(["configs/organisms/delayed.yaml", "configs/batches/c8.yaml"], 330_000),
    "hinted": TrainedPolicy(["configs/organisms/hinted.yaml"], 230_000),
    "many_fillers": TrainedPolicy(["configs/organisms/many_fillers.yaml"], 600_000),
}
"""By name."""


class Comparison(NamedTuple):
    """Hold one comparison.

    Args:
        title: Sentence that its declarations begin with.
        policies: Policies that it runs on, each a campaign of its own.
        arms: Condition files by arm.
        families: Comparisons by the question that they answer.
        rates: Rates that are tried, in multiples of the usual one.
        seeds: Seeds of the comparison; those of rates are two others.
        summary: What of held-out pass@1 is compared.
        budget: What is declared of the budget beside its tokens.
        rate_of: Arm whose rate all have, where arms are to differ in one thing only; by default each has its own.

    """

    title: str
    policies: Sequence[str]
    arms: Arms
    families: Mapping[str, Mapping[str, Any]]
    rates: Sequence[float]
    seeds: Sequence[int]
    summary: str = "area"
    budget: Mapping[str, int] = {}
    rate_of: str | None = None

    @property
    def rated_arms(self) -> Arms:
        """Arms whose rates are tried."""
        return {self.rate_of: self.arms[self.rate_of]} if self.rate_of else self.arms

    def share_rates(self, factors: Mapping[str, float]) -> dict[str, float]:
        """Return the rate of every arm from those that were chosen."""
        return {arm: factors[self.rate_of or arm] for arm in self.arms}


def name_batch(prompts: int, completions: int) -> list[str]:
    """Return the files that set prompts and completions of a step."""
    return [f"configs/batches/p{prompts}.yaml", f"configs/batches/c{completions}.yaml"]


COMPARISONS = {
    "sparse": Comparison(
        "Where success is rare: credit that decodes nothing, against rollouts used twice.",
        ["hinted", "many_fillers"],
        {
            "flat": [FLAT, *name_batch(4, 8)],
            "reused": [REUSED, *name_batch(4, 8)],
            "critic": [CRITIC, *name_batch(4, 8)],
        },
        {"against rollouts used twice": {"baseline": "reused", "conditions": ["flat", "critic"]}},
        rates=(0.5, 1, 2),
        seeds=range(610, 622),
    ),
    "falls": Comparison(
        "Why runs of a critic fall: with and without credit for groups of equal rewards.",
        ["long_chains", "delayed"],
        {
            "critic": [CRITIC, *name_batch(4, 8)],
            "critic_mixed": ["studies/adoption/conditions/expected_gradient_mixed_reused.yaml", *name_batch(4, 8)],
        },
        {"without groups of equal rewards": {"baseline": "critic", "conditions": ["critic_mixed"]}},
        rates=(0.5, 1),
        seeds=range(640, 656),
        summary="steadiness",
        budget={"evaluations": 12},
        rate_of="critic",
    ),
    "batches": Comparison(
        "Is the lead of rollouts used twice that of smaller batches?",
        ["long_chains"],
        {
            "flat_1": [FLAT, *name_batch(1, 8)],
            "flat_2": [FLAT, *name_batch(2, 8)],
            "flat_4": [FLAT, *name_batch(4, 8)],
            "halves_once": ["studies/adoption/conditions/grpo_halves.yaml", *name_batch(4, 8)],
            "reused": [REUSED, *name_batch(4, 8)],
        },
        {
            "rollouts used twice": {
                "baseline": "reused",
                "conditions": ["flat_1", "flat_2", "flat_4", "halves_once"],
            }
        },
        rates=(0.5, 1, 2),
        seeds=range(660, 672),
    ),
}
"""By name."""

RATE_SEEDS = (600, 601)


def list_campaigns() -> Iterator[tuple[str, str]]:
    """Yield the comparison and the policy of every campaign."""
    for name, comparison in COMPARISONS.items():
        for policy in comparison.policies:
            yield name, policy


def choose_candidates(policy: str) -> Arms:
    """Return the two candidates for a policy whose cards on *hinted* led most by area."""
    leads = {row["condition"]: float(row["area_gain"]) for row in read_results("candidates/leaderboard")}
    able = [name for name in CANDIDATES if policy == "hinted" or name not in HINT_READERS]
    best = sorted(able, key=leads.__getitem__, reverse=True)[:2]
    return {name: [CANDIDATES[name], *name_batch(4, 8)] for name in best}


def find_comparison(name: str, policy: str) -> Comparison:
    """Return a comparison on a policy; where success is rare, the candidates that were chosen are among its arms."""
    comparison = COMPARISONS[name]
    if name != "sparse":
        return comparison
    candidates = choose_candidates(policy)
    (question, family), *_ = comparison.families.items()
    families = {question: {**family, "conditions": [*family["conditions"], *candidates]}}
    return comparison._replace(arms={**comparison.arms, **candidates}, families=families)


def declare_campaign(name: str, policy: str, conditions: Mapping[str, list[str]], **more: Any) -> dict[str, Any]:
    """Return the declaration of a campaign of one comparison on one policy."""
    comparison = COMPARISONS[name]
    return {
        "configs": ["configs/tiny.yaml", *POLICIES[policy].files],
        "conditions": dict(conditions),
        **more,
        "budget": {"decoded_tokens": POLICIES[policy].tokens, **comparison.budget},
        "primary": "val/pass_at_1",
        "summary": comparison.summary,
        "effect": 0.03,
        "held_out": {"questions": "by_seed", "draws": "by_seed"},
        "settings": {
            "checkpoint.every_n_train_steps": 1000,
            "data.init_args.validation_size": 256,
            "model.validation.completions": 2,
            "model.pass_k": 2,
        },
    }


def declare_grid(part: str, name: str, policy: str, conditions: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the campaign of a part of the rates of a comparison."""
    choice = {"baseline": next(iter(conditions)), "seeds": [*RATE_SEEDS], "exploratory": True}
    plan = declare_campaign(name, policy, conditions, **choice)
    return {"name": f"{name}_{part}_{policy}", **plan, "summary": "area"}


def declare_main(name: str, policy: str, factors: Mapping[str, float]) -> dict[str, Any]:
    """Return a comparison on a policy, each arm at the rate that was chosen for it."""
    comparison = find_comparison(name, policy)
    rates = comparison.share_rates(factors)
    conditions = {arm: add_rate_files(files, rates[arm]) for arm, files in comparison.arms.items()}
    families = {question: dict(family) for question, family in comparison.families.items()}
    baseline = next(iter(families.values()))["baseline"]
    plan = declare_campaign(name, policy, conditions, baseline=baseline, families=families, seeds=[*comparison.seeds])
    return {"name": f"{name}_{policy}", **plan}


def declare_part(part: str, name: str, policy: str) -> dict[str, Any] | None:
    """Return a declaration of one part of the work; None where nothing is to be run."""
    comparison, grid = find_comparison(name, policy), f"{name}_rates_{policy}"
    if part == "rates":
        return declare_grid("rates", name, policy, list_rate_conditions(comparison.rated_arms, comparison.rates))
    if part == "more":
        conditions = list_further_conditions(comparison.arms, comparison.rates, grid)
        return declare_grid("rates_more", name, policy, conditions) if conditions else None
    factors = choose_factors([grid, f"{name}_rates_more_{policy}"])
    return declare_main(name, policy, factors) if factors else None


def main() -> None:
    """Write the declarations of one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["rates", "more", "main"])
    parser.add_argument("--comparisons", nargs="+", choices=COMPARISONS, default=[*COMPARISONS])
    args = parser.parse_args()
    for name, policy in list_campaigns():
        if name in args.comparisons and (plan := declare_part(args.part, name, policy)):
            write_declaration(__file__, plan, TITLES[args.part].format(COMPARISONS[name].title))


TITLES = {"rates": "Rates. {}", "more": "Rates beyond those whose best was at an end. {}", "main": "{}"}

if __name__ == "__main__":
    main()
