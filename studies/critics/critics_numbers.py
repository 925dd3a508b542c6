"""Numbers of the study of which credit pays at equal decoded tokens."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from rlcredit.pages.number_formats import format_p_value
from rlcredit.pages.tables import Table
from rlcredit.statistics.collapse import clopper_pearson_limit
from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.t_test import paired_t_test
from studies.adoption.declare_adoption import COMPARISONS
from studies.critics.declare_rounds import (
    FLAT,
    STOPPED,
    choose_setting,
    measure_distances,
    measure_setting,
    read_areas,
    render_area_table,
)
from studies.lead_tables import (
    Lead,
    PairedValues,
    compare_campaign,
    measure_detectable_lead,
    measure_leads,
    measure_room,
    pair_campaign_values,
    render_lead_table,
)
from studies.numbers import (
    ENTROPY,
    PASS,
    Estimate,
    count_collapses,
    format_estimate,
    has_results,
    measure_run_areas,
    name_conclusion,
    parse_comparison,
    read_results,
    require_claim,
    student_estimate,
)

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

ANNEALED = {"entropy_mask": "entropy_mask_annealed", "rsi_mask": "rsi_mask_annealed", "sepa_constant": "sepa_annealed"}
"""Kinds of credit, and each as it is after it has been annealed out."""

MARGIN = 0.02
"""Difference that was declared not to matter, in proportions."""

GUARDED = (
    ("equal_tokens_28_prompts", "calibrated"),
    ("hard_questions", "calibrated_reused"),
    ("smollm2_critic", "calibrated"),
    ("sparse_hinted", "critic"),
)
"""Declared comparisons of the guarded critic beside those on the five policies."""

UNPAIRED = [f"falls_{policy}" for policy in COMPARISONS["falls"].policies]
"""Declared campaigns in which the guarded critic is the baseline of its own variant."""

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


def estimate_final_lead(campaign: str, condition: str, baseline: str = FLAT) -> Estimate:
    """Return the lead of a condition over a baseline when the tokens are spent, in points."""
    wanted = (baseline, condition)
    return next(
        each.end.estimate
        for each in compare_campaign(campaign)
        if (each.row["baseline"], each.row["condition"]) == wanted
    )


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
    ends = correct_ends(campaigns, condition)
    lines = []
    for (policy, campaign), end in zip(campaigns.items(), ends, strict=True):
        row, leads = find_study_row(study, campaign, condition), list_area_leads(campaign, condition)
        lines.append(
            (
                policy,
                f"{mean_area(campaign, FLAT):.3f}",
                f"{measure_room(campaign, FLAT):.1f}",
                format_estimate(parse_comparison(row), sign=True),
                f"{(leads > 0).sum()} of {len(leads)}",
                format_p_value(float(row["p_campaign"])),
                format_p_value(float(row["p_study"])),
                row["verdict_study"].partition(":")[0],
                format_estimate(end.estimate, sign=True),
                format_p_value(end.p),
            )
        )
    heads = (
        *("policy", "area, flat", "room", f"lead of {name} by area", "pairs ahead", "p, alone", "p, corrected"),
        *("verdict, corrected", "lead at the end", "p, corrected"),
    )
    return Table(heads, lines).to_markdown()


def find_paired_values(campaign: str, condition: str, baseline: str = FLAT) -> PairedValues:
    """Return the paired differences of one comparison of a campaign."""
    rows = read_results(f"{campaign}/comparisons")
    wanted = (baseline, condition)
    pairs = zip(rows, pair_campaign_values(campaign), strict=True)
    return next(values for row, values in pairs if (row["baseline"], row["condition"]) == wanted)


def correct_ends(campaigns: Mapping[str, str], condition: str) -> list[Lead]:
    """Return the leads of a condition over flat credit at the end, corrected over the policies."""
    values = [find_paired_values(campaign, condition) for campaign in campaigns.values()]
    return measure_leads([pair.ends for pair in values], [pair.collapsed for pair in values])


def measure_equivalence_p(differences: np.ndarray) -> float:
    """Return the p of a mean difference beyond 2 points, from differences in proportions."""
    return equivalence_test(paired_t_test(differences), MARGIN).p


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
        "masked": list_masked_runs(),
    }


def list_masked_runs() -> list[dict[str, float]]:
    """Return the areas of the critic without credit for equal groups, and with it at the same seed and setting."""
    areas = read_areas(ROUNDS)
    return [
        {"masked": area, "unmasked": areas[CRITIC][setting][seed]}
        for setting, runs in sorted(areas["mixed"].items())
        for seed, area in runs.items()
    ]


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
        "table": render_lead_table(LARGE_BATCHES),
        "detectable": measure_detectable_lead(LARGE_BATCHES),
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
        "table": render_lead_table(SMALL_BATCHES),
        "detectable": measure_detectable_lead(SMALL_BATCHES),
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


def collect_all_collapses() -> dict[str, Any]:
    """Return how many runs of the guarded critic collapsed in all finished campaigns, and of its baselines."""
    counts = np.zeros((2, 2), dtype=int)
    for campaign, condition in (*((name_campaign(policy), CRITIC) for policy in POLICIES), *GUARDED):
        (row,) = [row for row in read_results(f"{campaign}/comparisons") if row["condition"] == condition]
        pairs = int(row["pairs"])
        counts += [[int(row["collapsed"]), pairs], [int(row["baseline_collapsed"]), pairs]]
    unpaired = [campaign for campaign in UNPAIRED if has_results(f"{campaign}/conditions")]
    for campaign in unpaired:
        (row,) = [row for row in read_results(f"{campaign}/conditions") if row["condition"] == "critic"]
        counts[0] += [int(row["collapsed"]), int(row["runs"])]
    (fallen, runs), (baseline_fallen, baseline_runs) = counts.tolist()
    require_claim(
        (fallen, baseline_fallen) == (4, 0), "four runs of the guarded critic collapse, none of its baselines"
    )
    _, p = np.asarray(stats.fisher_exact([[fallen, runs - fallen], [baseline_fallen, baseline_runs - baseline_fallen]]))
    return {
        "fallen": fallen,
        "runs": runs,
        "further_campaigns": len(GUARDED) + len(unpaired),
        "baseline_runs": baseline_runs,
        "p": float(p),
        "limit": clopper_pearson_limit(fallen, runs),
    }


def estimate_batch_lead() -> Estimate:
    """Return the lead by area of flat credit with 4 prompts a step over 28, at equal tokens and on equal seeds."""
    areas = [measure_run_areas(read_results(f"{name}/runs"), "budget") for name in (SMALL_BATCHES, LARGE_BATCHES)]
    seeds = sorted(seed for condition, seed in areas[0] if condition == FLAT)
    return student_estimate(np.array([100 * (areas[0][FLAT, seed] - areas[1][FLAT, seed]) for seed in seeds]))


def compare_all_pairs(campaigns: Mapping[str, str]) -> dict[str, Any]:
    """Return the leads of the critic over all pairs of the five policies, by area and at the end."""
    values = [find_paired_values(campaign, CRITIC) for campaign in campaigns.values()]
    areas = np.concatenate([pair.areas for pair in values])
    ends = np.concatenate([pair.ends for pair in values])
    numbers = {
        "pairs": len(areas),
        "area": student_estimate(100 * areas),
        "end": student_estimate(100 * ends),
        "area_p": measure_equivalence_p(areas),
        "end_p": measure_equivalence_p(ends),
    }
    require_claim(
        max(numbers["area_p"], numbers["end_p"]) < 0.05, "over all pairs the critic is equivalent to flat credit"
    )
    return numbers


def collect_numbers() -> dict[str, Any]:
    """Return the numbers that pages state of critics at equal tokens."""
    campaigns = {policy: name_campaign(policy) for policy in POLICIES}
    rows = {policy: find_study_row(STUDY, campaign, CRITIC) for policy, campaign in campaigns.items()}
    overall = [name_conclusion(row["verdict_study"]) for row in rows.values()]
    require_claim(
        overall == ["undecided", "undecided", "undecided", "equivalent", "undecided"],
        "corrected over the five policies, the critic is better on none by area",
    )
    ends = dict(zip(POLICIES, correct_ends(campaigns, CRITIC), strict=True))
    decided = [policy for policy, lead in ends.items() if lead.p < 0.05]
    require_claim(
        decided == ["decoy"] and ends["decoy"].estimate.mean < 0, "at the end the critic is worse on decoy alone"
    )
    backward = {
        policy: {kind: average_last_counts(campaign, "backward")[kind] for kind in (FLAT, CRITIC)}
        for policy, campaign in campaigns.items()
    }
    entropies = {
        kind: {policy: read_final_values(each, kind, ENTROPY).mean() for policy, each in campaigns.items()}
        for kind in (FLAT, CRITIC)
    }
    lower = [
        policy for policy in ("long_chains", "aligned", "decoy") if entropies[CRITIC][policy] < entropies[FLAT][policy]
    ]
    require_claim(
        lower == ["long_chains", "aligned"], "the critic ends more certain on two of the three policies named"
    )
    require_claim(
        max(backward, key=lambda policy: backward[policy][CRITIC] / backward[policy][FLAT]) == "backward",
        "the critic reads most tokens in backward passes on backward",
    )
    return {
        "rounds": collect_rounds(),
        "large": collect_large_batches(),
        "small": collect_small_batches(),
        "batch_lead": estimate_batch_lead(),
        "policies": render_policies(STUDY, campaigns, CRITIC, "the critic"),
        "leads": {policy: parse_comparison(row) for policy, row in rows.items()},
        "ends": {policy: lead.estimate for policy, lead in ends.items()},
        "end_ps": {policy: lead.p for policy, lead in ends.items()},
        "p_study": float(rows["long_chains"]["p_study"]),
        "p_alone": {policy: float(row["p_campaign"]) for policy, row in rows.items()},
        "room": {policy: measure_room(campaign, FLAT) for policy, campaign in campaigns.items()},
        "all": compare_all_pairs(campaigns),
        "backward": {policy: counts[CRITIC] / counts[FLAT] for policy, counts in backward.items()},
        "fallen": find_fall(),
        "collapses": collect_all_collapses(),
        "entropies": entropies,
    }
