"""Numbers of the leaderboard that ships."""

from typing import Any

from rlcredit.cards import leaderboard
from rlcredit.cards.ranking import SHIPPED_CARDS, rank_conditions, summarise_leaderboard
from studies.csv_rows import read_csv_rows
from studies.leaderboard.predictors import correlate_predictors, make_predictor_table
from studies.numbers import Estimate, Rows, find_results, parse_estimate, require_claim


def collect_findings(rows: Rows, finding: str) -> dict[str, dict[str, Estimate]]:
    """Return a finding of every card that has it, by condition and policy."""
    found: dict[str, dict[str, Estimate]] = {}
    for row in rows:
        if row[finding]:
            ends = (float(row[f"{finding}{end}"] or "nan") for end in ("", "_low", "_high"))
            found.setdefault(row["condition"], {})[row["organism"]] = Estimate(*ends)
    return found


def collect_correlations(rows: Rows) -> dict[str, dict[str, Estimate]]:
    """Return the correlation of every measurement with the gain and with its size."""
    found: dict[str, dict[str, Estimate]] = {}
    for known in correlate_predictors(rows):
        found.setdefault(known.probe, {})[known.outcome] = parse_estimate(str(known))
    return found


def drop_worst_conditions(rows: Rows, number: int = 5) -> Rows:
    """Return the rows without the conditions whose mean gain is lowest."""
    worst = [each.name for each in rank_conditions(rows)][-number:]
    return [row for row in rows if row["condition"] not in worst]


def collect_values_and_rereadings() -> dict[str, Any]:
    """Return what pages say of operators that read values or read completions again; one policy, quick cards."""
    rows = read_csv_rows(find_results("cards_aligned.csv"))
    gains = collect_findings(rows, "area_gain")
    require_claim({row["organism"] for row in rows} == {"aligned"}, "all cards are of one policy")
    require_claim(gains["ExpectedGradient"] == gains["HeadCritic"], "two operators lead to one condition")
    return {
        "table": leaderboard.render_leaderboard_table(rows),
        "summary": summarise_leaderboard(rows),
        "gains": {name: found["aligned"] for name, found in gains.items()},
        "ends": {name: found["aligned"] for name, found in collect_findings(rows, "gain").items()},
        "correlations": collect_correlations(rows),
        "count": len(rows),
    }


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the leaderboard."""
    rows = read_csv_rows(SHIPPED_CARDS)
    gains = collect_findings(rows, "area_gain")
    require_claim(len(gains) == 20, "twenty operators stand on the leaderboard")
    return {
        "table": leaderboard.render_leaderboard_table(rows),
        "summary": summarise_leaderboard(rows),
        "predictor_table": make_predictor_table(list(correlate_predictors(rows))).to_markdown(),
        "gains": gains,
        "agreement": collect_findings(rows, "agreement_gained"),
        "moved": collect_findings(rows, "moved"),
        "angles": collect_findings(rows, "angle"),
        "correlations": collect_correlations(rows),
        "later": collect_values_and_rereadings(),
        "correlations_without_worst": collect_correlations(drop_worst_conditions(rows)),
    }
