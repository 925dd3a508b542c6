"""Numbers of the study of which credit pays at equal decoded tokens."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from docs.numbers import (
    ENTROPY,
    PASS,
    Estimate,
    count_collapses,
    count_conclusions,
    format_estimate,
    list_conclusions,
    measure_run_areas,
    name_conclusion,
    parse_comparison,
    read_results,
    render_study,
    require_claim,
    student_estimate,
)
from docs.studies.equal_tokens.declare_rounds import (
    FLAT,
    STOPPED,
    choose_setting,
    measure_distances,
    measure_setting,
    read_areas,
    render_area_table,
)
from docs.studies.equal_tokens.tabulate_difficulty import (
    LEVELS,
    estimate_level_lead,
    read_values,
    render_difficulty_table,
)

from rlcredit.pages.number_formats import format_p_value
from rlcredit.pages.tables import Table
from rlcredit.statistics.collapse import clopper_pearson_limit

CONSTANT = "critic_rates"
"""Campaign that tried constant rates."""

ROUNDS = ("batch_rates", "batch_rates_2")
"""Campaigns that tried batches under a rate that falls."""

POLICIES = ("long_chains", "aligned", "decoy", "backward", "delayed")
"""Policies on which the critic was compared with flat credit, each in a campaign of its own."""

LARGE_BATCHES = "equal_tokens_28_prompts"
"""Campaign that asks what credit does in large batches, on long_chains."""

SMALL_BATCHES = "equal_tokens_4_prompts"
"""Campaign that asks the same of small batches, and of operators that are annealed out."""

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

ANNEALED = {"entropy_mask": "entropy_mask_annealed", "rsi_mask": "rsi_mask_annealed", "sepa_constant": "sepa_annealed"}
"""Kinds of credit, and each as it is after it has been annealed out."""

CRITIC = "calibrated"
STUDY = "equal_tokens"
"""Results of the comparisons of all policies together."""


def name_campaign(policy: str) -> str:
    """Return the campaign of a policy."""
    return f"{STUDY}_{policy}"


def read_final_values(campaign: str, condition: str, metric: str = PASS) -> np.ndarray:
    """Return a held-out metric of a condition when its tokens are spent, by ascending seed."""
    rows = [row for row in read_results(f"{campaign}/runs") if row["condition"] == condition]
    last = max(int(row["budget"]) for row in rows)
    found = [row for row in rows if int(row["budget"]) == last]
    return np.array([float(row[metric]) for row in sorted(found, key=lambda row: int(row["seed"]))])


def estimate_final_lead(campaign: str, condition: str) -> Estimate:
    """Return by how much a condition is ahead of flat credit when the tokens are spent, in points."""
    return student_estimate(100 * (read_final_values(campaign, condition) - read_final_values(campaign, FLAT)))


def list_area_leads(campaign: str, condition: str) -> np.ndarray:
    """Return by how much area every run of a condition is ahead of the flat one of its seed, in points."""
    areas = measure_run_areas(read_results(f"{campaign}/runs"), "budget")
    seeds = sorted(seed for name, seed in areas if name == FLAT)
    return np.array([100 * (areas[condition, seed] - areas[FLAT, seed]) for seed in seeds])


def mean_area(campaign: str, condition: str) -> float:
    """Return the mean area of the runs of a condition."""
    areas = measure_run_areas(read_results(f"{campaign}/runs"), "budget")
    return float(np.mean([area for (name, _), area in areas.items() if name == condition]))


def find_study_row(study: str, campaign: str, condition: str, baseline: str = FLAT) -> dict[str, str]:
    """Return the line of a comparison in the results of a study, which are corrected over its campaigns."""
    wanted = (campaign, baseline, condition)
    rows = read_results(f"{study}/study")
    return next(row for row in rows if (row["campaign"], row["baseline"], row["condition"]) == wanted)


def render_policies(study: str, campaigns: Mapping[str, str], condition: str, name: str) -> str:
    """Return the table of a kind of credit against flat credit, a line per policy.

    Args:
        study: Results that are corrected over all campaigns.
        campaigns: Campaign of every policy.
        condition: Kind of credit.
        name: What heads call it.

    """
    lines = []
    for policy, campaign in campaigns.items():
        row, leads = find_study_row(study, campaign, condition), list_area_leads(campaign, condition)
        lines.append(
            (
                policy,
                f"{mean_area(campaign, FLAT):.3f}",
                f"{mean_area(campaign, condition):.3f}",
                format_estimate(parse_comparison(row), sign=True),
                f"{(leads > 0).sum()} of {len(leads)}",
                format_p_value(float(row["p_campaign"])),
                row["verdict_campaign"].partition(":")[0],
                format_p_value(float(row["p_study"])),
                row["verdict_study"].partition(":")[0],
                format_estimate(estimate_final_lead(campaign, condition), sign=True),
            )
        )
    heads = (
        *("policy", "area, flat", f"area, {name}", "lead", "pairs ahead", "p", "verdict"),
        *("p, all five", "verdict, all five", "lead at the end"),
    )
    return Table(heads, lines).to_markdown()


def collect_rounds() -> dict[str, Any]:
    """Return what was found when batches and rates were tried."""
    constant, falling = read_areas([CONSTANT]), read_areas(ROUNDS)
    best = {kind: choose_setting(settings) for kind, settings in falling.items()}
    heights = {kind: measure_setting(settings, best[kind]) for kind, settings in falling.items()}
    first = read_areas(ROUNDS[:1])
    require_claim(best[FLAT] == (2, 1.0), "flat credit is best with 2 prompts at the usual rate")
    require_claim(best[CRITIC] == (1, 0.5), "the critic is best with 1 prompt at half the usual rate")
    return {
        "constant": render_area_table(constant),
        "falling": render_area_table(falling),
        "flat": heights[FLAT],
        "critic": heights[CRITIC],
        "shared": measure_setting(falling[CRITIC], best[FLAT]),
        "behind": {kind: 100 * behind for kind, behind in measure_distances(first).items()},
        "limit": 100 * STOPPED,
    }


def find_fall() -> dict[str, float]:
    """Return pass@1 of the run of the critic that collapsed, before and after it fell."""
    rows = read_results(f"{name_campaign('delayed')}/runs")
    values = {int(row["step"]): float(row[PASS]) for row in rows if (row["condition"], row["seed"]) == (CRITIC, "503")}
    require_claim(list(values)[1:3] == [51, 102], "the run that fell was evaluated after 51 and 102 steps")
    return {"before": values[51], "after": values[102]}


def collect_large_batches() -> dict[str, Any]:
    """Return what was found of kinds of credit in large batches."""
    rows = {row["condition"]: row for row in read_results(f"{LARGE_BATCHES}/comparisons")}
    verdicts = {name: name_conclusion(row["verdict"]) for name, row in rows.items()}
    require_claim(verdicts.pop("gtpo") == "worse", "GTPO is worse than flat credit in large batches")
    require_claim({*verdicts.values()} == {"undecided"}, "in large batches the other kinds are undecided")
    require_claim(count_collapses(LARGE_BATCHES, CRITIC) == (1, 8), "one run of the critic collapses in large batches")
    return {
        "leads": {name: parse_comparison(row) for name, row in rows.items()},
        "p_critic": float(rows[CRITIC]["p_holm"]),
        "end": estimate_final_lead(LARGE_BATCHES, CRITIC),
        "flat": mean_area(LARGE_BATCHES, FLAT),
        "small_flat": mean_area(name_campaign("long_chains"), FLAT),
        "table": render_study(LARGE_BATCHES),
    }


def collect_small_batches() -> dict[str, Any]:
    """Return what was found of kinds of credit in small batches, and of those that are annealed out."""
    rows = {(row["baseline"], row["condition"]): row for row in read_results(f"{SMALL_BATCHES}/comparisons")}
    verdicts = {pair: name_conclusion(row["verdict"]) for pair, row in rows.items()}
    require_claim(verdicts.pop((FLAT, "gtpo")) == "worse", "GTPO is worse than flat credit in small batches")
    require_claim({*verdicts.values()} == {"undecided"}, "in small batches the other kinds are undecided")
    kinds = sorted({condition for _, condition in rows})
    fallen = [count_collapses(SMALL_BATCHES, kind)[0] for kind in (FLAT, *kinds)]
    require_claim(not any(fallen), "no run in small batches collapses")
    widest = max(parse_comparison(row).high for row in rows.values())
    require_claim(widest < 5, "in small batches no interval holds a gain of five points")
    return {
        "leads": {condition: parse_comparison(row) for (base, condition), row in rows.items() if base == FLAT},
        "annealed": {kind: parse_comparison(rows[kind, annealed]) for kind, annealed in ANNEALED.items()},
        "end": estimate_final_lead(SMALL_BATCHES, "gtpo"),
        "flat": mean_area(SMALL_BATCHES, FLAT),
        "table": render_study(SMALL_BATCHES),
    }


def average_last_counts(campaign: str, count: str) -> dict[str, float]:
    """Return what the runs of every condition had counted when their tokens were spent, on average.

    Args:
        campaign: Name of the campaign.
        count: Kind of tokens, or ``step``.

    """
    last = {(row["condition"], row["seed"]): float(row[count]) for row in read_results(f"{campaign}/tokens")}
    counts: dict[str, list[float]] = {}  # of each run the last row is kept, for its steps ascend
    for (condition, _), counted in last.items():
        counts.setdefault(condition, []).append(counted)
    return {condition: float(np.mean(each)) for condition, each in counts.items()}


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
        "table": render_study(REUSE),
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
        "policies": render_policies(REUSE_STUDY, campaigns, "reused", "reused"),
        "tables": {policy: render_study(campaigns[policy]) for policy in OTHERS},
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
    }


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the study."""
    campaigns = {policy: name_campaign(policy) for policy in POLICIES}
    rows = {policy: find_study_row(STUDY, campaign, CRITIC) for policy, campaign in campaigns.items()}
    require_claim(
        [name_conclusion(row["verdict_campaign"]) for row in rows.values()]
        == ["better", "better", "equivalent", "equivalent", "undecided"],
        "the critic is better on two policies, equivalent on two and undecided on one, each by itself",
    )
    overall = [name_conclusion(row["verdict_study"]) for row in rows.values()]
    require_claim(overall.count("undecided") == 4, "corrected over all five, four are undecided")
    collapses = np.array([count_collapses(campaign, CRITIC) for campaign in campaigns.values()])
    require_claim(list(collapses[:, 0]) == [0, 0, 0, 0, 1], "one run of the critic collapses, on delayed")
    ends = {policy: estimate_final_lead(campaign, CRITIC) for policy, campaign in campaigns.items()}
    require_claim(
        [each.low > 0 or -(each.high < 0) for each in ends.values()] == [1, 0, -1, 0, 0],
        "the critic ends ahead on the first policy, behind on the third, and the others decide nothing",
    )
    return {
        "tables": {policy: render_study(campaign) for policy, campaign in campaigns.items()},
        "rounds": collect_rounds(),
        "large": collect_large_batches(),
        "small": collect_small_batches(),
        "reuse": collect_reuse(),
        "everywhere": collect_reuse_on_policies(),
        "policies": render_policies(STUDY, campaigns, CRITIC, "critic"),
        "leads": {policy: parse_comparison(row) for policy, row in rows.items()},
        "ends": ends,
        "p_study": float(rows["long_chains"]["p_study"]),
        "pooled": student_estimate(np.concatenate([list_area_leads(each, CRITIC) for each in campaigns.values()])),
        "pairs": sum(len(list_area_leads(each, CRITIC)) for each in campaigns.values()),
        "runs": int(collapses[:, 1].sum()),
        "fallen": find_fall(),
        "collapse_limit": clopper_pearson_limit(int(collapses[:, 0].sum()), int(collapses[:, 1].sum())),
        "entropies": {
            kind: {policy: read_final_values(each, kind, ENTROPY).mean() for policy, each in campaigns.items()}
            for kind in (FLAT, CRITIC)
        },
    }
