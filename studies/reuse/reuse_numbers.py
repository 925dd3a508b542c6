"""Numbers of the study of rollouts that are used twice, at equal decoded tokens."""

from typing import Any

import numpy as np

from rlcredit.statistics.collapse import clopper_pearson_limit
from rlcredit.statistics.t_test import welch_t_test
from studies.critics.critics_numbers import (
    CRITIC,
    POLICIES,
    average_last_counts,
    correct_ends,
    estimate_final_lead,
    find_study_row,
    list_area_leads,
    mean_area,
    name_campaign,
    read_final_values,
    render_policies,
)
from studies.critics.declare_rounds import FLAT, read_areas, render_area_table
from studies.lead_tables import measure_detectable_lead, measure_room, render_lead_table
from studies.numbers import (
    ENTROPY,
    Estimate,
    count_collapses,
    count_conclusions,
    list_conclusions,
    measure_run_areas,
    name_conclusion,
    parse_comparison,
    read_results,
    require_claim,
)
from studies.reuse.tabulate_difficulty import LEVELS, estimate_level_lead, read_values, render_difficulty_table

REUSE = "hard_questions"
"""Campaign of MaxRL, DAPO, refilled batches and rollouts that are used again, on long_chains."""

REUSE_ROUNDS = ("hard_questions_rates", "hard_questions_rates_2", "hard_questions_rates_3")
"""Campaigns that tried their rates."""

OTHERS = POLICIES[1:]
"""Policies on which rollouts that are used again were compared with flat credit afterwards."""

SMALL_FLAT = "flat_2_prompts"
"""Flat credit with 2 prompts a step there."""

REUSE_STUDY = "reused"
"""Results of these comparisons and of those on long_chains together."""


def collect_reuse() -> dict[str, Any]:
    """Return what was found of MaxRL, DAPO, refilled batches and rollouts that are used again."""
    rows = {(row["baseline"], row["condition"]): row for row in read_results(f"{REUSE}/comparisons")}
    better = list_conclusions(REUSE, "better")
    require_claim(better == ["reused", "dapo_no_refill", "dapo"], "rollouts that are used again are better, all three")
    require_claim(count_conclusions(REUSE)["undecided"] == 4, "the other four comparisons are undecided")
    fallen = count_collapses(REUSE, "calibrated_reused")
    require_claim(fallen == (1, 8), "one run of the critic on reused rollouts collapses")
    kinds = [condition for base, condition in rows if base == FLAT]
    steps, backward = (average_last_counts(REUSE, count) for count in ("step", "backward"))
    difficulty = read_results(f"{REUSE}/difficulty")
    solved = min(read_values(difficulty, FLAT, level, "pass_at_k").mean() for level in LEVELS)
    require_claim(sum(count_collapses(REUSE, kind)[0] for kind in steps) == 1, "no other run collapses")
    return {
        "table": render_lead_table(REUSE),
        "detectable": measure_detectable_lead(REUSE),
        "rates": render_area_table(read_areas(REUSE_ROUNDS)),
        "difficulty": render_difficulty_table(difficulty),
        "leads": {kind: parse_comparison(rows[FLAT, kind]) for kind in kinds},
        "ends": {kind: estimate_final_lead(REUSE, kind) for kind in kinds},
        "critic": parse_comparison(rows["reused", "calibrated_reused"]),
        "refill_in_dapo": parse_comparison(rows["dapo_no_refill", "dapo"]),
        "backward": {kind: tokens / backward[FLAT] for kind, tokens in backward.items()},
        "steps": steps,
        "hard": {kind: estimate_level_lead(difficulty, kind, "hard", "pass_at_1", FLAT) for kind in kinds},
        "solved_in_eight": solved,
        "pass_at_8": read_narrowing("val/pass_at_k"),
        "entropy": read_narrowing(ENTROPY),
    }


def collect_reuse_on_policies() -> dict[str, Any]:
    """Return what was found of rollouts that are used again on all policies."""
    campaigns = {POLICIES[0]: REUSE} | {policy: f"reused_{policy}" for policy in OTHERS}
    flat = {policy: find_study_row(REUSE_STUDY, each, "reused") for policy, each in campaigns.items()}
    small = {policy: find_study_row(REUSE_STUDY, campaigns[policy], "reused", SMALL_FLAT) for policy in OTHERS}
    words = {
        (kind, by): [name_conclusion(row[f"verdict_{by}"]) for row in rows.values()]
        for kind, rows in ((FLAT, flat), (SMALL_FLAT, small))
        for by in ("campaign", "study")
    }
    require_claim(
        words[FLAT, "campaign"] == ["better", "undecided", "better", "equivalent", "equivalent"],
        "reuse is better on long_chains and decoy, undecided on aligned and equivalent on two, each by itself",
    )
    require_claim(
        words[FLAT, "study"] == ["better", "undecided", "undecided", "equivalent", "equivalent"],
        "corrected over the five, reuse is better on long_chains alone",
    )
    require_claim(
        words[SMALL_FLAT, "study"] == ["better", "undecided", "equivalent", "equivalent"],
        "corrected, reuse is better than flat credit with 2 prompts on aligned, and undecided on decoy",
    )
    fallen = [[count_collapses(each, kind)[0] for each in campaigns.values()] for kind in (FLAT, "reused")]
    require_claim(fallen == [[0, 0, 1, 0, 0], [0] * 5], "one run of flat credit collapses, on decoy, and none of reuse")
    critic = {policy: list_area_leads(name_campaign(policy), CRITIC).mean() for policy in OTHERS}
    leads = {policy: parse_comparison(row) for policy, row in small.items()}
    require_claim(
        all(leads[policy].mean > critic[policy] for policy in OTHERS), "reuse leads by more than the critic does"
    )
    fallen = [count_collapses(campaigns[policy], SMALL_FLAT)[0] for policy in OTHERS]
    require_claim(not any(fallen), "no run of flat credit with 2 prompts collapses")
    rates = {policy: read_areas([f"reused_rates_{policy}"]) for policy in OTHERS}
    for policy in ("backward", "delayed"):
        lowest, second, *_ = (np.mean([*runs.values()]) for _, runs in sorted(rates[policy]["reused"].items()))
        require_claim(abs(lowest - second) < 0.002, f"the two lowest rates of reuse are level on {policy}")
    decoy = list_area_leads(campaigns["decoy"], "reused")
    lowest_run = read_final_values(campaigns["decoy"], FLAT).argmin()  # the one that collapsed
    pairs = np.concatenate([list_area_leads(each, "reused") for each in campaigns.values()])
    ends = {policy: estimate_final_lead(each, "reused") for policy, each in campaigns.items()}
    require_claim(min(each.mean for each in ends.values()) > 0, "reuse ends behind on no policy")
    return {
        "policies": render_policies(REUSE_STUDY, campaigns, "reused", "reuse"),
        "rates": {policy: render_area_table(areas) for policy, areas in rates.items()},
        "leads": {policy: parse_comparison(row) for policy, row in flat.items()},
        "small": leads,
        "ends": ends,
        "ahead": int((pairs > 0).sum()),
        "pairs": len(pairs),
        "collapse_limit": clopper_pearson_limit(0, len(pairs)),
        "without_fallen": float(np.delete(decoy, lowest_run).mean()),
        "flat": {policy: mean_area(each, FLAT) for policy, each in campaigns.items()},
        "comparisons": len(read_results(f"{REUSE_STUDY}/study")),
        "steps": average_last_counts(campaigns["delayed"], "step"),
        "backward": {policy: compare_backward_tokens(each) for policy, each in campaigns.items()},
        "room": {policy: measure_room(each, FLAT) for policy, each in campaigns.items()},
        "end_p": min(lead.p for lead in correct_ends(campaigns, "reused")),
        "small_long_chains": compare_with_small_batches(),
    }


def read_narrowing(metric: str) -> dict[str, float]:
    """Return a held-out metric at the end of reuse with the critic and without it."""
    return {kind: float(read_final_values(REUSE, kind, metric).mean()) for kind in ("calibrated_reused", "reused")}


def compare_backward_tokens(campaign: str) -> float:
    """Return how many times the tokens of flat credit reuse has in backward passes."""
    tokens = average_last_counts(campaign, "backward")
    return tokens["reused"] / tokens[FLAT]


def compare_with_small_batches() -> Estimate:
    """Return the lead by area of reuse over flat credit with 2 prompts on long_chains, which ran on other seeds."""
    names = ((REUSE, "reused"), (name_campaign(POLICIES[0]), FLAT))
    areas = []
    for campaign, condition in names:
        runs = measure_run_areas(read_results(f"{campaign}/runs"), "budget")
        areas.append(np.array([100 * area for (name, _), area in runs.items() if name == condition]))
    test = welch_t_test(*areas)
    return Estimate(test.difference, test.interval.low, test.interval.high)


def collect_numbers() -> dict[str, Any]:
    """Return the numbers that pages state of rollouts that are used twice."""
    return {**collect_reuse(), "everywhere": collect_reuse_on_policies()}
