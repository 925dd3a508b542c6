"""Sentences with numbers: each is written again from the files beside it, and must be on its page."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from csv_rows import read_csv_rows
from scipy import stats

from docs.studies.headline import choose_rates, tabulate_thresholds
from docs.studies.noise import tabulate_noise
from docs.studies.oracle import tabulate_oracle
from docs.studies.published_tables import tabulate_published
from rlcredit.campaign.declaration import read_declaration as declared
from rlcredit.cards import leaderboard
from rlcredit.cards.card_page import format_with_interval
from rlcredit.cards.predictors import correlate_predictors, render_predictor_table
from rlcredit.cards.ranking import SHIPPED, rank_conditions, summarise_leaderboard
from rlcredit.statistics.collapse import clopper_pearson_limit, collapsed_run_mask

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
BOARD, CARDS = read_csv_rows(SHIPPED), read_csv_rows(RESULTS / "smollm2_cards.csv")


PASS, ENTROPY, LENGTH = "val/pass_at_1", "val/entropy", "val/completion_length"


def held_out(study, condition, metric=PASS, step=100):
    """Return a held-out metric of every run of a condition, by ascending seed."""
    rows = [
        row
        for row in read_csv_rows(RESULTS / study / "runs.csv")
        if (row["condition"], int(row["step"])) == (condition, step)
    ]
    return np.array([float(row[metric]) for row in sorted(rows, key=lambda row: int(row["seed"]))])


def gains(study, condition, baseline="c1_grpo", metric=PASS, step=100):
    """Return paired differences from a baseline, of pass@1 in percentage points."""
    own, base = (held_out(study, name, metric, step) for name in (condition, baseline))
    return (own - base) * (100 if metric == PASS else 1)


def area_gains(study, condition, baseline="c1_grpo"):
    """Return paired differences of the area under pass@1, in percentage points."""
    steps = sorted({int(row["step"]) for row in read_csv_rows(RESULTS / study / "runs.csv")})
    return np.trapezoid([gains(study, condition, baseline, step=step) for step in steps], steps, axis=0) / steps[-1]


def student(values):
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    return low, high


def with_interval(values, digits, sign=""):
    """Write the mean of paired differences with Student's interval."""
    return "{:{form}} ({:{form}} to {:{form}})".format(values.mean(), *student(values), form=f"{sign}.{digits}f")


def led(study, condition, digits=1, **kwargs):
    return with_interval(gains(study, condition, **kwargs), digits)


def in_unit(text, unit):
    """Write the unit between an estimate and its interval."""
    return text.replace(" (", f" {unit} (")


def fallen(study, condition):
    """Return how many runs of a condition collapsed, and of how many."""
    (row,) = [row for row in read_csv_rows(RESULTS / study / "conditions.csv") if row["condition"] == condition]
    return int(row["collapsed"]), int(row["runs"])


def verdicts(study):
    return Counter(
        row["verdict"].split(" ")[0].rstrip(":") for row in read_csv_rows(RESULTS / study / "comparisons.csv")
    )


def behind(study, *conditions, baseline="c1_grpo"):
    ends = sorted(gains(study, baseline, condition).mean() for condition in conditions)
    return f"{ends[0]:.1f} to {ends[-1]:.1f}"


OPERATORS = ("c2_grpo_gtpo", "c3_grpo_hicra", "c4_grpo_sepa", "delight", "hard_delight_20")
ON_MAXRL = ("c6_maxrl_gtpo", "c7_maxrl_hicra", "c8_maxrl_sepa", "maxrl_sepa_hicra")
OPTIMAL = "monte_carlo_optimal"


def rate():
    doubled, measured = (
        area_gains("headroom_rate_6_8", "grpo_lr_double"),
        area_gains("headroom_optimal_6_8", OPTIMAL),
    )
    gained = doubled > 0
    return (
        f"({doubled[gained].min():.1f} to {doubled[gained].max():.1f} points; measured credit gains "
        f"{measured[gained].min():.1f} to\n{measured[gained].max():.1f} with the same seeds"
    )


def early():
    after = led("headroom_rate_6_8", "grpo_lr_double", step=25)
    return f"After 25 steps it leads by {in_unit(after, 'points').replace(')', ', all eight pairs)')}"


def excluded():
    welch = [
        tabulate_published.welch_t_test(values, base)
        for (experiment, role, _), (_, values) in tabulate_published.read_published_runs(
            RESULTS / "published.csv"
        ).items()
        if role != "baseline"
        for (other, kind, _), (_, base) in tabulate_published.read_published_runs(RESULTS / "published.csv").items()
        if kind == "baseline" and other == experiment
    ]
    assert all(test.interval.low < 0 < test.interval.high for test in welch)
    return {8: "no interval of the eight differences excludes zero"}[len(welch)]


def study_verdicts():
    said = verdicts("tiny_study")
    return (
        f"{said['better']} better, {said['worse']} worse, {said['equivalent']} equivalent and {said['undecided']} "
        "undecided"
    )


def behind_maxrl():
    return behind("tiny_study", *ON_MAXRL, baseline="c5_maxrl")


def oracle(condition, names, digits):
    return lambda: tabulate_oracle.render_means_table(
        tabulate_oracle.read_oracle_curves(RESULTS / "oracle.csv", condition), names, digits
    )


def beside(study, condition, baseline, metric, digits, step=100):
    """Write a held-out metric under a condition and under its baseline, and the paired difference."""
    means = (f"{held_out(study, name, metric, step).mean():.{digits}f}" for name in (condition, baseline))
    difference = with_interval(gains(study, condition, baseline, metric, step), digits, "+")
    return (*means, f"({difference.replace(' (', ', ')}")


def quadrants_behind():
    paired = [gains("seed_002", "eapo_base", f"eapo_base_{name}", step=400) for name in ("plr", "nlr")]
    assert all((each > 0).all() for each in paired)
    return "low entropy alone ends {:.0f} and {:.0f} pp behind".format(*(each.mean() for each in paired))


def delayed():
    assert (gains("tiny_study_2", "c5_maxrl", "c8_delay_10") > 0).all()
    ahead = led("tiny_study_2", "c5_maxrl", 2, baseline="c8_delay_10")
    return f"by {in_unit(ahead, 'pp')}, in all eight pairs: worse."


def delighted(sentence):
    """Write how far the scaled and the z-scored Delight end behind, with intervals."""
    ahead = [led("tiny_study_2", "c1_grpo", baseline=f"delight_{kind}") for kind in ("scale", "zscore")]
    return sentence.format(*(part for each in ahead for part in each.split(" ", 1)))


def collapses():
    rows = [row for study in ("seed_001", "seed_004") for row in read_csv_rows(RESULTS / study / "conditions.csv")]
    counts = [int(row["collapsed"]) for row in rows if "grpo_std" != row["condition"] != "c1_grpo"]
    some = [count for count in counts if count]
    return f"{len(some)} of {len(counts)} with collapses, {min(some)} to {max(some)} of eight runs"


NOISE, NOISE_28 = (read_csv_rows(RESULTS / f"{name}.csv") for name in ("noise", "noise_28_prompts"))
MONTE_CARLO = "Monte Carlo, 8, optimal"


def noise(stack, terms="6-8", completions="8", quantity="agreement", rows=NOISE):
    """Return how two batches agree, with and without its interval."""
    keys = {"stack": stack, "terms": terms, "completions": completions, "quantity": quantity}
    written = tabulate_noise.render_noise_cell(rows, **keys)
    return written.partition(" ")[0], written


def decoded_times():
    """Write how many times the tokens of the completions were decoded for their continuations, by length of chains."""
    decoded, lengths = (
        {row["condition"]: float(row["mean"]) for row in read_csv_rows(RESULTS / f"{name}.csv")}
        for name in ("decoded_tokens", "completion_length")
    )
    times = [decoded[name] / (32 * lengths[name]) for name in ("mc_optimal_2", "mc_optimal_6", "mc_optimal_10")]
    return "over the 100 steps {:.1f}, {:.1f} and {:.1f} times as many tokens".format(*times)


def turned():
    """Write how far operators other than the hard gate, and other prompts, turn the update; seed by seed."""
    degrees, floors = {}, {}
    for row in read_csv_rows(RESULTS / "gradients.csv"):
        if row["quantity"].endswith("_raw_degrees") and "hard" not in row["quantity"]:
            degrees.setdefault((row["quantity"], row["seed"]), []).append(float(row["value"]))
        if row["quantity"] == "full_cosine":
            floors.setdefault(row["seed"], []).append(float(row["value"]))
    means = [np.mean(values) for values in degrees.values()]
    floor = [np.degrees(np.arccos(np.mean(values))) for values in floors.values()]
    return [f"{ends[0]:.0f} to {ends[-1]:.0f}" for ends in (sorted(means), sorted(floor))]


def on_smollm2(*quantities, factor=1):
    """Write in which range the oracle's quantities lie before training, over the runs on SmolLM2."""
    curves = tabulate_oracle.read_oracle_curves(RESULTS / "smollm2_oracle.csv", "oracle_few")
    ends = [sorted(curves[quantity][0]) for quantity in quantities]
    assert {len(values) for values in ends} == {3}
    digits = 2 if factor == 1 else 1
    return [f"{factor * values[0]:.{digits}f} to {factor * values[-1]:.{digits}f}" for values in ends]


def without_phrases():
    """Say how many of SmolLM2's answers were searched for the 18 phrases, if none of them holds one."""
    (row,) = [
        row
        for row in read_csv_rows(RESULTS / "smollm2_plans.csv")
        if (row["planner"], row["answers"]) == ("18 phrases", "all")
    ]
    assert row["with_a_plan"] == "0"
    return f"None of {int(row['completions']):,} answers of SmolLM2 holds one of the 18 phrases"


OPPOSITE = [f"{ledger}_{kind}" for ledger in ("GRPO", "OutcomeAnchor") for kind in tabulate_oracle.OPPOSITE]


def on_board(condition, organism, finding="area_gain", digits=1):
    """Write a finding of a card, of the leaderboard or of SmolLM2, with its interval."""
    row = next(row for row in (*BOARD, *CARDS) if (row["condition"], row["organism"]) == (condition, organism))
    return format_with_interval(*(float(row[f"{finding}{end}"]) for end in ("", "_low", "_high")), f"+.{digits}f")


def masked(organism, digits):
    """Write how much credit the mask of the most uncertain moves and how far that turns the gradient."""
    moved, angle = (float(on_board("EntropyMask", organism, name, 5).split(" ")[0]) for name in ("moved", "angle"))
    return f"{100 * moved:.0f} % of the credit", f"turns the gradient by {angle:.{digits}f} degrees"


def unsigned(text):
    """Return an estimate and its interval without plus signs."""
    estimate, _, ends = text.replace("+", "").rstrip(")").partition(" (")
    return estimate, ends


def foretells(probe, outcome="gain", rows=BOARD):
    return str(next(known for known in correlate_predictors(rows) if (known.probe, known.outcome) == (probe, outcome)))


def without_the_worst():
    """Write how the gain is foretold on the board without the five conditions whose mean gain is lowest."""
    worst = [each.name for each in rank_conditions(BOARD)][-5:]
    rows = [row for row in BOARD if row["condition"] not in worst]
    found = (foretells(probe, rows=rows) for probe in ("angle", "agreement_gained"))
    return "the angle goes with the gain at {} and agreement at {}.".format(*found)


def turned_further():
    angles = [float(row["angle"]) for row in BOARD if row["organism"] == "aligned"]
    assert len(angles) == 20
    return {8: "eight of twenty operators turn it further"}[sum(angle > 20 for angle in angles)]


CONTROLS, BEST, LONGER, MORE, TOKENS = (
    f"headline_{name}" for name in ("controls", "best", "300", "collapse", "tokens_best")
)
RATES, TOKEN_RATES = (
    declared(ROOT / "configs" / "campaigns" / f"{name}.yaml") for name in ("headline_rates", "headline_tokens_rates")
)
GRID, TOKEN_GRID = (choose_rates.read_final_means(RESULTS / each.name, PASS, 100) for each in (RATES, TOKEN_RATES))


def controlled(condition, baseline="measured"):
    return led(CONTROLS, condition, baseline=baseline)


def on_the_way(condition):
    return with_interval(area_gains(CONTROLS, condition, "measured"), 1)


def factor():
    """Write what the odds without the measuring cost, if two of eight runs collapse under them."""
    assert fallen(CONTROLS, "flat_odds") == (2, 8)
    return f"({gains(CONTROLS, 'flat_odds', 'flat').mean():.1f} pp, two of eight runs collapse)"


def strengths():
    return [gains(CONTROLS, "flat", f"gtpo_{beta}").mean() for beta in ("002", "01", "03")]


def at_best(condition, baseline="flat", **kwargs):
    return led(BEST, condition, baseline=baseline, **kwargs)


def lowered(rate, other):
    """Write by how much a condition of the grid ends below another, in percentage points."""
    return f"{100 * (GRID[other] - GRID[rate]):.1f} points"


def worse_at_best():
    worse = [row["condition"] for row in read_csv_rows(RESULTS / BEST / "comparisons.csv") if row["verdict"] == "worse"]
    assert worse == ["gtpo", "sepa_constant", "delight_scaled"]
    gtpo, _, delight = (unsigned(with_interval(gains(BEST, name, "flat"), 1)) for name in worse)
    constant = gains(BEST, "sepa_constant", "flat").mean()
    return (
        f"GTPO ({gtpo[0]} pp, {gtpo[1]}), SEPA at constant lambda ({constant:.1f}, one collapse) and scaled\n"
        f"Delight ({delight[0]}, {delight[1]}) are worse"
    )


def falling():
    lower = [gains(BEST, name, f"{name}_decayed").mean() for name in ("measured", "flat")]
    lead = at_best("measured_decayed", "flat_decayed")
    return f"by {lower[0]:.1f} and {lower[1]:.1f} points, and the lead is {lead}."


def constant_worse():
    assert (gains(BEST, "sepa_constant", "flat") < 0).all()
    assert fallen(BEST, "sepa_constant") == (1, 8)
    return "in all eight pairs**, and one run collapses"


def longer(step=300):
    return led(LONGER, "measured", baseline="flat", step=step)


def narrows():
    after = [longer(step).split(" ")[0] for step in (100, 200)]
    return "{} points after 100 steps, {} after 200 and {} after 300".format(*after, longer())


def thresholds():
    return list(
        tabulate_thresholds.render_threshold_table(
            tabulate_thresholds.group_pass_curves(read_csv_rows(RESULTS / LONGER / "runs.csv")), "flat"
        )
    )


def in_findings():
    gtpo, delight = (unsigned(led(BEST, "flat", baseline=name)) for name in ("gtpo", "delight_scaled"))
    constant = gains(BEST, "flat", "sepa_constant").mean()
    return (
        f"GTPO ends {gtpo[0]} pp behind ({gtpo[1]}), Delight {delight[0]} ({delight[1]}), "
        f"SEPA at constant lambda {constant:.1f} with"
    )


def with_more_steps(steps=300):
    """Return how far flat credit after more steps is ahead of measured credit after a hundred, in points."""
    return 100 * (held_out(LONGER, "flat", step=steps) - held_out(LONGER, "measured", step=100))


def share_of_tokens(steps):
    """Return the tokens of so many steps of flat credit, as a share of those of a hundred of measured credit."""
    (decoded,), (length,) = (
        [float(row["mean"]) for row in read_csv_rows(RESULTS / f"{name}.csv") if row["condition"] == "mc_optimal_6"]
        for name in ("decoded_tokens", "completion_length")
    )
    return steps / 100 / (1 + decoded / (32 * length))


def further():
    """Write how much flat credit gains by going on."""
    said = [
        (f"{100 * share_of_tokens(steps):.0f} %", in_unit(with_interval(with_more_steps(steps), 1), "points ahead"))
        for steps in (200, 300)
    ]
    (some, near), (more, ahead) = said
    return (
        f"with {some} of the tokens that measured credit decodes in 100, ends {near}, which decides nothing; "
        f"after 300, with {more}, {ahead}."
    )


def at_chosen(condition):
    """Return how far flat credit with as many tokens is ahead of measured credit, each at its best rate, in points."""
    return gains(TOKENS, condition, "measured")


def reaches():
    """Return the ratio of steps to the highest level."""
    return thresholds()[-1].split(" | ")[-1].rstrip(" |")


def together(condition):
    """Return the ends of the runs of a condition on the eight seeds of the controls and on the 24 more."""
    return np.concatenate([held_out(study, condition) for study in (CONTROLS, MORE)])


def safe(sentence):
    """Write how often runs collapse, if none of 32 of measured credit does and one of flat credit."""
    ends = [together(name) for name in ("measured", "flat")]
    falls = [int(collapsed_run_mask(each).sum()) for each in ends]
    assert falls == [0, 1]
    assert {len(each) for each in ends} == {32}
    return sentence.format(*(f"{clopper_pearson_limit(number, 32):.0%}".replace("%", " %") for number in falls))


def asked():
    """Write the table of what else could explain the lead."""
    rows = {
        "again, on fresh seeds": gains(CONTROLS, "measured", "flat"),
        "each at [its own best learning rate](#at-a-learning-rate-of-its-own)": gains(BEST, "measured", "flat"),
        "under a learning rate that falls": gains(BEST, "measured_decayed", "flat_decayed"),
        "under twice that rate, falling": gains(TOKENS, "measured_x2_decayed", "flat_x2_decayed"),
        "after [300 steps](#after-300-steps)": gains(LONGER, "measured", "flat", step=300),
        "on [24 more seeds](#how-often-a-run-collapses)": gains(MORE, "measured", "flat"),
        "against flat GRPO with [as many tokens](#at-equal-tokens), of seven times the prompts": gains(
            CONTROLS, "measured", "flat_28_prompts"
        ),
        "the same, [each at its best learning rate](#each-at-its-best-rate)": -at_chosen("flat_28_prompts"),
        "after 100 steps, against flat GRPO after [300](#more-steps)": -with_more_steps(),
        "the [factor](#the-measuring-or-the-factor) of its baseline without the measuring": gains(
            CONTROLS, "flat_odds", "flat"
        ),
    }
    lines = [
        f"| {what} | {lead.mean():+.1f} ({' to '.join(f'{end:.1f}' for end in student(lead))}) |"
        for what, lead in rows.items()
    ]
    return "\n".join(["| asked | lead over flat GRPO, points of held-out pass@1 |", "|---|---|", *lines])


SENTENCES = [
    ("docs/studies/headline.md", lambda: safe("that fewer than {} do (95 %); of flat credit one does, fewer than {}.")),
    ("docs/findings.md", lambda: safe("collapses, fewer than {} do; of flat credit one does, fewer than {}.")),
    (
        "docs/findings.md",
        lambda: f"On 24 more seeds it is {in_unit(led(MORE, 'measured', baseline='flat'), 'pp')}.",
    ),
    ("docs/findings.md", lambda: "moves {} and {};".format(*masked("smollm2", 1))),
    ("docs/studies/headline.md", asked),
    ("README.md", lambda: f"by {at_best('measured')} with [each at its best learning rate]"),
    ("README.md", lambda: f"after 300 steps in place of 100 by {longer()}."),
    (
        "README.md",
        lambda: "end {:.1f}, {:.1f} and {:.1f} behind;".format(
            *(gains(BEST, "flat", name).mean() for name in ("gtpo", "sepa_constant", "delight_scaled"))
        ),
    ),
    (
        "docs/findings.md",
        lambda: (
            f"it is {in_unit(at_best('measured'), 'pp')}, under a rate that falls "
            f"{at_best('measured_decayed', 'flat_decayed')}, under twice"
        ),
    ),
    (
        "docs/findings.md",
        lambda: (
            f"{longer(100).split(' ')[0]} pp after 100 steps, {longer()} after 300; pass@1 of 0.90 takes {reaches()}"
        ),
    ),
    ("docs/findings.md", in_findings),
    ("docs/studies/headline.md", narrows),
    ("docs/studies/headline.md", lambda: "\n".join(thresholds())),
    (
        "docs/studies/headline.md",
        lambda: "takes {} of them ({}).".format(*unsigned(reaches())),
    ),
    (
        "docs/studies/headline.md",
        lambda: "\n".join(choose_rates.render_rate_table(choose_rates.group_conditions_by_factor(RATES), GRID)),
    ),
    ("docs/studies/headline.md", lambda: f"ahead by {in_unit(at_best('measured'), 'points')}."),
    ("docs/studies/headline.md", falling),
    ("docs/studies/headline.md", lambda: "is {} ahead ({}).".format(*unsigned(at_best("entropy_mask")))),
    (
        "docs/studies/headline.md",
        lambda: f"from {GRID['sepa_ramped_x1']:.3f} to {GRID['sepa_ramped_x2']:.3f} in the grid",
    ),
    ("docs/studies/headline.md", constant_worse),
    ("docs/studies/replication.md", worse_at_best),
    ("docs/studies/headline.md", lambda: f"were {lowered('sepa_constant_x1', 'sepa_constant_x2')} apart in the grid"),
    (
        "docs/studies/headline.md",
        lambda: (
            f"may be its rate**: {in_unit(at_best('entropy_mask', step=25), 'points')} after 25 steps, where flat "
            f"credit gained {gains('headroom_rate_6_8', 'grpo_lr_double', step=25).mean():.1f} from"
        ),
    ),
    ("docs/studies/headline.md", lambda: f"ends {lowered('flat_x2', 'flat_x1')} lower\n  with it in the grid"),
    ("README.md", lambda: f"flat GRPO by {in_unit(led('headroom_optimal_6_8', OPTIMAL), 'points')}"),
    ("README.md", lambda: f"again by {controlled('measured', 'flat')} on fresh seeds"),
    (
        "README.md",
        lambda: (
            f"ends ahead of it, by {with_interval(at_chosen('flat_28_prompts'), 1)} with each at its best rate; with"
        ),
    ),
    (
        "docs/findings.md",
        lambda: (
            f"prompts are ahead by {in_unit(with_interval(at_chosen('flat_28_prompts'), 1), 'pp')}, and seven times"
        ),
    ),
    (
        "docs/findings.md",
        lambda: f"falling, {with_interval(gains(TOKENS, 'measured_x2_decayed', 'flat_x2_decayed'), 1)}. |",
    ),
    (
        "docs/studies/headline.md",
        lambda: "\n".join(
            choose_rates.render_rate_table(choose_rates.group_conditions_by_factor(TOKEN_RATES), TOKEN_GRID)
        ),
    ),
    (
        "docs/studies/headline.md",
        lambda: "are {} ahead of measured credit, after 25 steps by {:.1f}.".format(
            in_unit(with_interval(at_chosen("flat_28_prompts"), 1), "points"),
            gains(TOKENS, "flat_28_prompts", "measured", step=25).mean(),
        ),
    ),
    (
        "docs/studies/headline.md",
        lambda: "falling, measured credit is {} ahead".format(
            in_unit(with_interval(gains(TOKENS, "measured_x2_decayed", "flat_x2_decayed"), 1), "points")
        ),
    ),
    ("docs/studies/headline.md", further),
    (
        "docs/studies/headline.md",
        lambda: "of {} under flat credit, {} under measured\ncredit, and {} with seven times the prompts".format(
            noise("GRPO")[0],
            noise(MONTE_CARLO)[0],
            noise("GRPO", rows=NOISE_28)[0],
        ),
    ),
    ("docs/findings.md", lambda: f"ahead of flat GRPO by {in_unit(controlled('measured', 'flat'), 'pp')}, and"),
    ("docs/findings.md", lambda: f"seven times the prompts by {controlled('flat_28_prompts')};"),
    ("docs/findings.md", lambda: "end {} ahead ({}), undecided.".format(*unsigned(controlled("flat_56_completions")))),
    ("docs/findings.md", factor),
    (
        "docs/findings.md",
        lambda: "({} pp, {})".format(*unsigned(controlled("optimal_token_baseline", "flat"))),
    ),
    ("docs/findings.md", lambda: "by {:.1f}, {:.1f} and {:.1f} pp.".format(*strengths())),
    (
        "docs/studies/headline.md",
        lambda: "loses {:.1f} points, that strength (0.1) {:.1f}, three times it {:.1f}.".format(*strengths()),
    ),
    (
        "docs/studies/headline.md",
        lambda: f"{in_unit(controlled('flat_28_prompts'), 'points')} ahead of measured",
    ),
    ("docs/studies/headline.md", lambda: f"{on_the_way('flat_56_completions')}. Other prompts"),
    (
        "docs/studies/headline.md",
        lambda: f"{in_unit(controlled('flat_28_prompts', 'flat_56_completions'), 'points')} over other completions",
    ),
    (
        "docs/studies/headline.md",
        lambda: "{}, {}, {} and {} points for prompts, {}, {}, {} and {}\nfor completions".format(
            *(
                f"{gains(CONTROLS, name, 'measured', step=step).mean():.1f}"
                for name in ("flat_28_prompts", "flat_56_completions")
                for step in (25, 50, 75, 100)
            )
        ),
    ),
    ("README.md", lambda: f"end {behind('headroom_operators_6_8', *OPERATORS)} points behind flat GRPO"),
    ("docs/findings.md", lambda: f"flat GRPO by {in_unit(led('headroom_optimal_2_4', OPTIMAL), 'pp')}"),
    ("docs/findings.md", lambda: f"{led('headroom_optimal_6_8', OPTIMAL)} on 6 to 8"),
    ("docs/findings.md", lambda: f"{led('headroom_10_12', OPTIMAL)} on 10 to 12"),
    ("docs/findings.md", lambda: f"no difference: +{led('headroom_2_4', 'monte_carlo_credit')} pp"),
    ("docs/findings.md", lambda: f"and {led('headroom_6_8', 'monte_carlo_credit')} pp"),
    ("docs/findings.md", lambda: f"end {behind('headroom_operators_6_8', *OPERATORS)} pp behind flat GRPO"),
    ("docs/findings.md", lambda: f"end {behind_maxrl()} pp behind"),
    ("docs/findings.md", lambda: f"({study_verdicts()})"),
    ("docs/studies/replication.md", study_verdicts),
    ("docs/studies/replication.md", lambda: f"ends {behind_maxrl()} percentage points (pp) behind"),
    ("docs/studies/headroom.md", early),
    ("docs/studies/headroom.md", rate),
    ("docs/findings.md", quadrants_behind),
    ("docs/findings.md", lambda: delighted("{} pp behind GRPO {}, z-scored {} {}")),
    (
        "docs/findings.md",
        lambda: "with areas of {}, entropy with {}; flat".format(*on_smollm2("surprisal_auc", "entropy_auc")),
    ),
    (
        "docs/findings.md",
        lambda: "a cosine of {} with true credit, GTPO {}.".format(*on_smollm2("GRPO_cosine", "GTPO_cosine")),
    ),
    ("docs/findings.md", without_phrases),
    ("docs/findings.md", lambda: "by {} degrees; eight other prompts turn it by {}.".format(*turned())),
    ("README.md", lambda: "by {} degrees; eight other prompts turn it by {}.".format(*turned())),
    ("docs/findings.md", lambda: f"({noise(MONTE_CARLO)[0]} against {noise('GRPO')[0]} at 6 to 8 terms)"),
    ("docs/findings.md", lambda: f"agree better still ({noise('GRPO', completions='56')[0]})"),
    ("docs/studies/headroom.md", decoded_times),
    ("docs/studies/published_tables.md", excluded),
    ("docs/leaderboard.md", lambda: "\n".join(leaderboard.render_leaderboard_table(BOARD))),
    ("docs/leaderboard.md", lambda: summarise_leaderboard(BOARD)),
    ("docs/leaderboard.md", lambda: "\n".join(render_predictor_table(list(correlate_predictors(BOARD))))),
    (
        "docs/leaderboard.md",
        lambda: "({}), and behind on *aligned* ({});".format(*(on_board("GTPO", o) for o in ("delayed", "aligned"))),
    ),
    (
        "docs/leaderboard.md",
        lambda: "gains {} on *aligned* and loses\n  {} on".format(
            *(on_board("RSIMask", o) for o in ("aligned", "delayed"))
        ),
    ),
    (
        "docs/leaderboard.md",
        lambda: "by {} on *aligned* and {} on *aligned_1*".format(
            *(on_board("SEPA", o) for o in ("aligned", "aligned_1"))
        ),
    ),
    (
        "docs/leaderboard.md",
        lambda: "by {}; GTPO without the pooling changes that by {}.".format(
            *(on_board(name, "aligned", "agreement_gained", 2) for name in ("SEPA", "GTPO"))
        ),
    ),
    ("docs/leaderboard.md", lambda: f"costs {on_board('EntropyMask', 'decoy')} on *decoy*"),
    (
        "docs/leaderboard.md",
        lambda: "puts {} elsewhere and {}".format(*masked("delayed", 3)),
    ),
    ("docs/leaderboard.md", lambda: f"size of the gain, {foretells('angle', 'size')}"),
    ("docs/leaderboard.md", lambda: f"mostly for the worse, {foretells('angle')}. "),
    ("docs/leaderboard.md", lambda: f"goes with gains,\n  {foretells('agreement_gained')}."),
    ("docs/leaderboard.md", without_the_worst),
    ("docs/findings.md", turned_further),
    ("docs/leaderboard.md", lambda: f"inside completions is undecided: {foretells('cosine_within')}."),
    (
        "docs/findings.md",
        lambda: (
            "one policy ({}) and behind on two ({} and {}), the information mask ahead on two ({} and {}) and".format(
                *(on_board("GTPO", o).split(" ")[0] for o in ("delayed", "aligned", "aligned_1")),
                *(on_board("RSIMask", o).split(" ")[0] for o in ("aligned", "aligned_1")),
            )
        ),
    ),
    ("docs/findings.md", lambda: "behind on one ({}).".format(on_board("RSIMask", "delayed").split(" ")[0])),
    (
        "docs/findings.md",
        lambda: "say its phrases, {} and {};".format(*(on_board("SEPA", o) for o in ("aligned", "aligned_1"))),
    ),
    ("docs/findings.md", lambda: "it costs {} points.".format(on_board("EntropyMask", "decoy").split(" ")[0][1:])),
    (
        "docs/findings.md",
        lambda: (
            "(rank correlation {}), and how much better two batches agree with the gain ({}), as a small angle".format(
                *(
                    foretells(*of).replace(" (", ", ").rstrip(")")
                    for of in (("angle", "size"), ("agreement_gained", "gain"))
                )
            )
        ),
    ),
    (
        "README.md",
        lambda: "ahead by {} points ({}) and {} ({}) on the two that say its phrases".format(
            *(part for o in ("aligned", "aligned_1") for part in unsigned(on_board("SEPA", o)))
        ),
    ),
    (
        "docs/studies/replication.md",
        lambda: "{} points after 20 steps and by {} after 40; after 60 the difference is {}.".format(
            *(led("sepa_lead", "sepa_constant", baseline="flat", step=step) for step in (20, 40, 60))
        ),
    ),
    (
        "docs/findings.md",
        lambda: "it is {} points after 40 steps and {} after 60;".format(
            *(led("sepa_lead", "sepa_constant", baseline="flat", step=step) for step in (40, 60))
        ),
    ),
    (
        "docs/studies/published_tables.md",
        lambda: "\n".join(
            tabulate_published.render_published_table(tabulate_published.read_published_runs(RESULTS / "published.csv"))
        ),
    ),
]


@pytest.mark.parametrize(("page", "sentence"), SENTENCES)
def test_a_sentence_with_numbers_follows_from_the_results(page, sentence):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert sentence() in text


def test_the_longer_runs_begin_as_the_shorter_ones_did():
    begun = {
        study: {tuple(row.values()) for row in read_csv_rows(RESULTS / study / "runs.csv") if int(row["step"]) <= 100}
        for study in (CONTROLS, LONGER)
    }
    assert len(begun[LONGER]) == 80
    assert begun[LONGER] < begun[CONTROLS]
