"""Numbers of the study of what else could explain the lead of measured credit."""

from typing import Any

import numpy as np
from docs.numbers import (
    CAMPAIGNS,
    PASS,
    RESULTS,
    Estimate,
    count_collapses,
    estimate_area_lead,
    estimate_lead,
    list_conclusions,
    list_leads_by_step,
    pair_differences,
    parse_estimate,
    read_held_out,
    read_results,
    render_study,
    require_claim,
    student_estimate,
)
from docs.studies.headline import choose_rates
from docs.studies.headline.tabulate_thresholds import group_pass_curves, make_threshold_table

from rlcredit.campaign.declaration import read_declaration
from rlcredit.pages.tables import Table
from rlcredit.statistics.collapse import clopper_pearson_limit, collapsed_run_mask

CONTROLS = "headline_controls"
BEST = "headline_best"
LONGER = "headline_300"
MORE = "headline_collapse"
TOKENS = "headline_tokens_best"
STRENGTHS = ("gtpo_002", "gtpo_01", "gtpo_03")


def read_grid(name: str) -> dict[str, float]:
    """Return where every condition of a grid of learning rates ends."""
    return choose_rates.read_final_means(RESULTS / name, PASS, 100)


def render_grid(name: str) -> str:
    """Return the table of a grid of learning rates, and under it which choices are doubtful."""
    conditions = choose_rates.group_conditions_by_factor(read_declaration(CAMPAIGNS / f"{name}.yaml"))
    doubts = choose_rates.describe_rate_doubts(conditions, choose_rates.read_final_values(RESULTS / name, PASS, 100))
    listed = "\n".join(f"- {sentence}" for sentence in doubts)
    table = choose_rates.render_rate_table(conditions, read_grid(name))
    head = "Doubts about what was chosen, where tied is within one standard error of the paired differences:"
    return f"{table}\n\n{head}\n\n{listed}" if doubts else table


def collect_grid() -> dict[str, Any]:
    """Return what the grid says of conditions at several rates, differences in points."""
    ends = read_grid("headline_rates")
    return {
        "table": render_grid("headline_rates"),
        "tokens_table": render_grid("headline_tokens_rates"),
        "ramp": ends["sepa_ramped_x1"],
        "ramp_doubled": ends["sepa_ramped_x2"],
        "constant_apart": 100 * (ends["sepa_constant_x2"] - ends["sepa_constant_x1"]),
        "flat_lowered": 100 * (ends["flat_x1"] - ends["flat_x2"]),
    }


def collect_controls() -> dict[str, Any]:
    """Return what the controls say, in points."""
    fallen = count_collapses(CONTROLS, "flat_odds")
    return {
        "again": estimate_lead(CONTROLS, "measured", "flat"),
        "prompts": estimate_lead(CONTROLS, "flat_28_prompts", "measured"),
        "completions": estimate_lead(CONTROLS, "flat_56_completions", "measured"),
        "prompts_over_completions": estimate_lead(CONTROLS, "flat_28_prompts", "flat_56_completions"),
        "completions_area": estimate_area_lead(CONTROLS, "flat_56_completions", "measured"),
        "prompts_by_step": list_leads_by_step(CONTROLS, "flat_28_prompts", "measured"),
        "completions_by_step": list_leads_by_step(CONTROLS, "flat_56_completions", "measured"),
        "odds": estimate_lead(CONTROLS, "flat_odds", "flat"),
        "odds_collapsed": fallen[0],
        "odds_runs": fallen[1],
        "token_baseline": estimate_lead(CONTROLS, "optimal_token_baseline", "flat"),
        "strengths": [pair_differences(CONTROLS, "flat", name).mean() for name in STRENGTHS],
        "start": read_held_out(CONTROLS, "flat", step=0).mean(),
    }


def collect_best() -> dict[str, Any]:
    """Return what every kind of credit is worth at its own rate, in points."""
    worse = list_conclusions(BEST, "worse")
    require_claim(worse == ["gtpo", "sepa_constant", "delight_scaled"], f"{worse} are worse at their best rates")
    require_claim(
        (pair_differences(BEST, "sepa_constant", "flat") < 0).all(), "SEPA at constant lambda is behind in all"
    )
    require_claim(count_collapses(BEST, "sepa_constant") == (1, 8), "one run of SEPA at constant lambda collapses")
    require_claim(
        count_collapses("headroom_rate_6_8", "grpo_lr_double") == (3, 8), "three runs collapse at twice the rate"
    )
    conditions = ("measured", "gtpo", "hicra", "sepa_ramped", "sepa_constant", "delight_scaled", "entropy_mask")
    return {
        **{name: estimate_lead(BEST, name, "flat") for name in conditions},
        "decayed": estimate_lead(BEST, "measured_decayed", "flat_decayed"),
        "decayed_losses": [pair_differences(BEST, name, f"{name}_decayed").mean() for name in ("measured", "flat")],
        "doubled_decayed": estimate_lead(TOKENS, "measured_x2_decayed", "flat_x2_decayed"),
        "prompts": estimate_lead(TOKENS, "flat_28_prompts", "measured"),
        "prompts_early": pair_differences(TOKENS, "flat_28_prompts", "measured", step=25).mean(),
        "mask_early": estimate_lead(BEST, "entropy_mask", "flat", step=25),
        "doubled_early": estimate_lead("headroom_rate_6_8", "grpo_lr_double", step=25),
    }


def share_of_tokens(steps: int) -> float:
    """Tokens of so many steps of flat credit, as a share of those of a hundred of measured credit."""
    decoded, length = (
        float(row["mean"])
        for name in ("decoded_tokens", "completion_length")
        for row in read_results(name)
        if row["condition"] == "mc_optimal_6"
    )
    return steps / 100 / (1 + decoded / (32 * length))


def estimate_later_lead(steps: int) -> Estimate:
    """Return how far flat credit after more steps is ahead of measured credit after a hundred, in points."""
    later = read_held_out(LONGER, "flat", step=steps)
    return student_estimate(100 * (later - read_held_out(LONGER, "measured", step=100)))


def collect_longer() -> dict[str, Any]:
    """Return what three hundred steps say."""
    table = make_threshold_table(group_pass_curves(read_results(f"{LONGER}/runs")), "flat")
    ratios = [parse_estimate(row[-1]) for row in table.rows]
    (comparison,) = read_results(f"{LONGER}/comparisons")
    return {
        **{f"after_{step}": estimate_lead(LONGER, "measured", "flat", step=step) for step in (100, 200, 300)},
        "p": float(comparison["p_holm"]),
        "levels": table.to_markdown(),
        "ratio": ratios[-1],
        "lower_ratios": ratios[:-1],
        "flat_after_200": estimate_later_lead(200),
        "flat_after_300": estimate_later_lead(300),
        "tokens_of_200": share_of_tokens(200),
        "tokens_of_300": share_of_tokens(300),
    }


def collect_collapses() -> dict[str, Any]:
    """Return how often runs collapse, if none of measured credit does and one of flat credit."""
    ends = {
        name: np.concatenate([read_held_out(study, name) for study in (CONTROLS, MORE)])
        for name in ("measured", "flat")
    }
    falls = {name: int(collapsed_run_mask(each).sum()) for name, each in ends.items()}
    require_claim(falls == {"measured": 0, "flat": 1}, "no run of measured credit collapses, and one of flat credit")
    (runs,) = {len(each) for each in ends.values()}
    return {
        "lead": estimate_lead(MORE, "measured", "flat"),
        "runs": runs,
        **{f"{name}_limit": clopper_pearson_limit(number, runs) for name, number in falls.items()},
    }


def render_question_table(numbers: dict[str, Any]) -> str:
    """Return the table of everything that could explain the lead."""
    rows = {
        "again, on fresh seeds": numbers["controls"]["again"],
        "each at [its own best learning rate](#at-a-learning-rate-of-its-own)": numbers["best"]["measured"],
        "under a learning rate that falls": numbers["best"]["decayed"],
        "under twice that rate, falling": numbers["best"]["doubled_decayed"],
        "after [300 steps](#after-300-steps)": numbers["longer"]["after_300"],
        "on [24 more seeds](#how-often-a-run-collapses)": numbers["collapses"]["lead"],
        "against flat GRPO with [as many tokens](#at-equal-tokens), of seven times the prompts": (
            -numbers["controls"]["prompts"]
        ),
        "the same, [each at its best learning rate](#each-at-its-best-rate)": -numbers["best"]["prompts"],
        "after 100 steps, against flat GRPO after [300](#more-steps)": -numbers["longer"]["flat_after_300"],
        "the [factor](#the-measuring-or-the-factor) of its baseline without the measuring": numbers["controls"]["odds"],
    }
    lines = [(asked, f"{lead.mean:+.1f} ({lead.low:.1f} to {lead.high:.1f})") for asked, lead in rows.items()]
    return Table(("asked", "lead over flat GRPO, points of held-out pass@1"), lines).to_markdown()


def check_continued_runs() -> None:
    """Hold the longer runs to the shorter ones with which they begin."""
    begun = {
        study: {tuple(row.values()) for row in read_results(f"{study}/runs") if int(row["step"]) <= 100}
        for study in (CONTROLS, LONGER)
    }
    require_claim(len(begun[LONGER]) == 80, "eighty evaluations of the longer runs lie in their first hundred steps")
    require_claim(begun[LONGER] < begun[CONTROLS], "the longer runs begin as the shorter ones did")


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the study."""
    check_continued_runs()
    numbers: dict[str, Any] = {
        "controls": collect_controls(),
        "best": collect_best(),
        "longer": collect_longer(),
        "collapses": collect_collapses(),
        "grid": collect_grid(),
        "tables": {study: render_study(study) for study in (CONTROLS, BEST, LONGER, MORE, TOKENS)},
    }
    return {**numbers, "questions": render_question_table(numbers)}
