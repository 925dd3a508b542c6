"""Numbers of the study of credit between turns; a table whose results are missing says so."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rlcredit.pages.number_formats import format_p_value
from rlcredit.pages.tables import Table
from studies.critics.declare_rounds import Areas, read_areas, render_area_table
from studies.lead_tables import (
    LEVEL,
    Lead,
    compare_campaign,
    format_lead,
    measure_leads,
    pair_campaign_values,
    render_lead_table,
)
from studies.numbers import (
    NOT_RUN,
    Estimate,
    Rows,
    count_collapses,
    format_estimate,
    has_results,
    read_results,
    render_if_run,
    require_claim,
)
from studies.turns.declare_turns import (
    ALL_GAMES,
    ARMS,
    CREDIT_ARMS,
    GAMES,
    MAIN_SEEDS,
    PARTS_OF_RATES,
    RATE_SEEDS,
    RATES,
)

DENSITIES = {"1": 1.0, "4th": 0.25, "16th": 0.0625}
"""Share of turns that matter in corridors, by the ends of their names."""

EXACT = "true credit, its error taken off"
GROWTH_ASKED = (EXACT, "GiGPO", "StateValues", "TurnReturns, gamma 0.95", "GAE, turns")
"""Credit whose gain has a slope."""

THEORY_SLOPE = -0.5
"""Slope of the theory."""

Z_95 = 1.96
"""Standard errors from the mean to an end of an interval of 95 %."""


def read_estimate(row: Mapping[str, str]) -> Estimate:
    """Return the estimate in a row of the measurement; of NaN where it could not be told."""
    return Estimate(float(row["estimate"]), float(row["low"]), float(row["high"]))


def format_cell(estimate: Estimate) -> str:
    """Return an estimate with its interval, or that there is none.

    Example:
        >>> format_cell(Estimate(1.5, 1.0, 2.25)), format_cell(Estimate(float("nan"), 0.0, 1.0))
        ('1.50 (1.00 to 2.25)', 'no signal')

    """
    is_known = np.isfinite([estimate.mean, estimate.low, estimate.high]).all()
    return format_estimate(estimate, 2) if is_known else "no signal"


def tabulate_quantity(rows: Rows, quantity: str) -> str:
    """Return a table of one quantity: a line for each credit, a column for each game."""
    values = {
        (row["credit"], row["game"]): format_cell(read_estimate(row)) for row in rows if row["quantity"] == quantity
    }
    games = [game for game in ALL_GAMES if game in {game for _, game in values}]
    credits = dict.fromkeys(credit for credit, _ in values)
    lines = [[credit, *(values.get((credit, game), "") for game in games)] for credit in credits]
    return Table(["credit", *games], lines).to_markdown()


def fit_slope(gains: Mapping[float, Estimate]) -> Estimate:
    """Return the slope of the logarithm of a gain over that of rho, by least squares with the weights of its intervals.

    Args:
        gains: Gain by rho; of NaN and zero where it could not be told.

    Example:
        >>> fit_slope({rho: Estimate(rho**-0.5, 0.8 * rho**-0.5, 1.25 * rho**-0.5) for rho in (1, 0.25, 0.0625)}).mean
        -0.5

    """
    ends = np.array([(gain.mean, gain.low, gain.high) for gain in gains.values()])
    if len(ends) < len(DENSITIES) or not (np.isfinite(ends).all() and (ends > 0).all()):
        return Estimate(np.nan, np.nan, np.nan)
    places, logs = np.log([*gains]), np.log(ends)
    weights = (2 * Z_95 / (logs[:, 2] - logs[:, 1])) ** 2
    distances = places - np.average(places, weights=weights)
    spread = (weights * distances**2).sum()
    slope, error = (weights * distances * logs[:, 0]).sum() / spread, spread**-0.5
    return Estimate(round(float(slope), 12), float(slope - Z_95 * error), float(slope + Z_95 * error))


def fit_slopes(rows: Rows) -> dict[str, dict[str, Estimate]]:
    """Return the slope of the gain of every credit but the flat one, whose gain is one, by credit and corridor."""
    gains: dict[str, dict[str, dict[float, Estimate]]] = {}
    for row in rows:
        kind, _, density = row["game"].partition("_")
        if row["quantity"] == "gain" and density in DENSITIES and row["credit"] != "flat":
            points = gains.setdefault(row["credit"], {"corridor": {}, "hidden": {}})[kind]
            points[DENSITIES[density]] = read_estimate(row)
    return {credit: {kind: fit_slope(points) for kind, points in kinds.items()} for credit, kinds in gains.items()}


def tabulate_slopes(rows: Rows) -> str:
    """Return the table of slopes, with a column for each corridor."""
    lines = [[credit, *map(format_cell, kinds.values())] for credit, kinds in fit_slopes(rows).items()]
    return Table(["credit", "marked", "hidden"], lines).to_markdown()


def select_estimates(rows: Rows, credit: str, quantity: str, games: Iterable[str]) -> list[Estimate]:
    """Return a quantity of a credit in some games."""
    found = {row["game"]: read_estimate(row) for row in rows if (row["credit"], row["quantity"]) == (credit, quantity)}
    return [found[game] for game in games]


def collect_density_numbers(name: str) -> dict[str, Any]:
    """Return what the page says of signal-to-noise and agreement.

    Raises:
        ValueError: the results no longer carry a sentence of the page.

    """
    rows = read_results(name)
    slopes = fit_slopes(rows)
    growing = [one for credit in GROWTH_ASKED for one in slopes[credit].values() if np.isfinite(one.mean)]
    require_claim(
        all(one.low <= 0 <= one.high and one.low > THEORY_SLOPE for one in growing), "no gain grows as rho falls"
    )
    agreements = {
        arm: [one.mean for one in select_estimates(rows, credit, "agreement_within", GAMES)]
        for arm, credit in {"state_values": "StateValues", "gae": "GAE, turns"}.items()
    }
    corridors = [game for game in GAMES if game.startswith("corridor")]
    unsure = select_estimates(rows, "UncertainTurns", "agreement_within", corridors)
    require_claim(min(map(min, agreements.values())) > 0, "StateValues and GAE agree with true credit in every game")
    require_claim(all(one.high < 0 for one in unsure), "UncertainTurns disagrees with true credit in corridors")
    return {
        "true_slopes": slopes[EXACT],
        "true_gains": [one.mean for one in select_estimates(rows, EXACT, "gain", ALL_GAMES)],
        "agreements": agreements,
        "unsure": [one.mean for one in unsure],
    }


def render_density(name: str) -> dict[str, str]:
    """Return the tables of one measurement, by quantity."""
    quantities = ("signal_to_noise", "gain", "batch_gain", "agreement", "agreement_within", "over_random")
    tables = {
        quantity: render_if_run(name, lambda part=quantity: tabulate_quantity(read_results(name), part))
        for quantity in quantities
    }
    return {**tables, "slopes": render_if_run(name, lambda: tabulate_slopes(read_results(name)))}


def measure_pooled_leads(campaigns: Sequence[str]) -> dict[tuple[str, str], tuple[Lead, Lead]]:
    """Return the leads at the end and by area over all games, by condition and baseline.

    A pair is a game and a seed; each measure is corrected over all comparisons.
    """
    keys = [(one.row["condition"], one.row["baseline"]) for one in compare_campaign(campaigns[0])]
    pairs = list(zip(*(pair_campaign_values(campaign) for campaign in campaigns), strict=True))
    fallen = [any(pair.collapsed for pair in games) for games in pairs]
    ends, areas = (
        measure_leads([np.concatenate([getattr(pair, measure) for pair in games]) for games in pairs], fallen)
        for measure in ("ends", "areas")
    )
    return dict(zip(keys, zip(ends, areas, strict=True), strict=True))


def tabulate_pooled_leads(leads: Mapping[tuple[str, str], tuple[Lead, Lead]]) -> str:
    """Return the table of the leads over all games."""
    lines = []
    for arms, measures in leads.items():
        cells = [(format_lead(lead.estimate), format_p_value(lead.p)) for lead in measures]
        lines.append([*arms, *cells[0], *cells[1]])
    return Table(["condition", "against", "lead at the end", "p", "lead by area", "p"], lines).to_markdown()


def measure_trained_ratio(campaign: str, condition: str, baseline: str = "flat") -> float:
    """Return how many times the tokens of a baseline a run of a condition reads in backward passes."""
    tokens: dict[str, dict[str, float]] = {}
    for row in read_results(f"{campaign}/tokens"):
        runs = tokens.setdefault(row["condition"], {})
        runs[row["seed"]] = max(float(row["backward"]), runs.get(row["seed"], 0.0))
    return float(np.mean([*tokens[condition].values()]) / np.mean([*tokens[baseline].values()]))


def collect_pooled_numbers(campaigns: Sequence[str]) -> dict[str, Any]:
    """Return what the page says of all games together; the table says that they have not run while any is missing.

    Raises:
        ValueError: the results no longer carry a sentence of the page.

    """
    if not all(has_results(f"{campaign}/comparisons") for campaign in campaigns):
        return {"pooled": NOT_RUN}
    leads = measure_pooled_leads(campaigns)
    over_flat, over_reused = ({arm: leads[arm, baseline][1] for arm in CREDIT_ARMS} for baseline in ("flat", "reused"))
    require_claim(leads["reused", "flat"][1].p < LEVEL, "rollouts used twice lead flat credit")
    require_claim(
        all(lead.p >= LEVEL for lead in over_flat.values()), "no credit between turns is ahead of flat credit"
    )
    behind = [-lead.estimate.mean for lead in over_reused.values()]
    require_claim(
        all(lead.p < LEVEL for lead in over_reused.values()) and min(behind) > 0,
        "every credit between turns is behind rollouts used twice",
    )
    return {
        "pooled": tabulate_pooled_leads(leads),
        "areas": {f"{condition}_{baseline}": area.estimate for (condition, baseline), (_, area) in leads.items()},
        "ends": {f"{condition}_{baseline}": end.estimate for (condition, baseline), (end, _) in leads.items()},
        "behind_reused": behind,
        "trained": [measure_trained_ratio(campaign, "reused") for campaign in campaigns],
        "fallen": {arm: sum(count_collapses(campaign, arm)[0] for campaign in campaigns) for arm in ARMS},
        "runs_of_arm": sum(count_collapses(campaign, "flat")[1] for campaign in campaigns),
    }


def tabulate_games() -> str:
    """Return where credit is compared, and the tokens of a run."""
    lines = [[f"`turns_{name}`", f"`{game.environment}`", f"{game.tokens:,}"] for name, game in GAMES.items()]
    return Table(["campaign", "environment", "tokens of a run"], lines).to_markdown()


def read_rate_areas(game: str) -> Areas:
    """Return the areas of all rates that were tried in a game so far."""
    campaigns = [f"{part}_{game}" for part in PARTS_OF_RATES]
    return read_areas([campaign for campaign in campaigns if has_results(f"{campaign}/runs")])


def collect_numbers() -> dict[str, Any]:
    """Return the numbers and tables of the page."""
    mains, rates = ({game: f"{prefix}_{game}" for game in GAMES} for prefix in ("turns", "turns_rates"))
    return {
        "table_of_games": tabulate_games(),
        "arms": len(ARMS),
        "rates_tried": len(RATES),
        "rate_seeds": list(RATE_SEEDS),
        "further_campaigns": ", ".join(f"`{PARTS_OF_RATES[1]}_{game}`" for game in GAMES),
        "pairs": len(MAIN_SEEDS),
        "rate_runs": len(GAMES) * len(ARMS) * len(RATES) * len(RATE_SEEDS),
        "main_runs": len(GAMES) * len(ARMS) * len(MAIN_SEEDS),
        "declared": render_density("density"),
        "density": collect_density_numbers("density"),
        "leads": {
            campaign: render_if_run(f"{campaign}/comparisons", lambda name=campaign: render_lead_table(name))
            for campaign in mains.values()
        },
        **collect_pooled_numbers([*mains.values()]),
        "rates": {
            campaign: render_if_run(f"{campaign}/runs", lambda one=game: render_area_table(read_rate_areas(one)))
            for game, campaign in rates.items()
        },
    }
