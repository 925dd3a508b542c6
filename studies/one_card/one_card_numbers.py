"""Numbers of the page on one card: what was measured, calculated and counted.

Of the steps on the H200 no file is kept: `H200_STEPS` holds them as they were printed, a line for each of two updates
of the first shape.
"""

from typing import Any

from rlcredit.pages.tables import Table
from studies.machinery.count_operations import tabulate_counts
from studies.numbers import format_percent, read_results, require_claim

STEP_COLUMNS = ("shape", "tokens", "rollout", "rollout_share", "verify", "update", "limit")
H200_STEPS: list[dict[str, str]] = [
    dict(zip(STEP_COLUMNS, step, strict=True))
    for step in (
        ("smollm2_135m", "1024", "7.8", "0.12", "2.0", "8.6", "0.18"),
        ("smollm2_135m", "1024", "7.8", "0.12", "2.0", "9.9", "0.18"),
        ("qwen3_4b", "512", "10.1", "0.27", "1.3", "38.9", "2.75"),
    )
]
"""Seconds of steps on one H200 on 2026-11-27, share of the limit of a rollout, and limit of an update."""

STEP_COMPLETIONS = 256
"""Completions of a step."""

TRL_COST = 15
"""Microseconds of TRL's update for each sampled token: smollm2_135m, 256 tokens, 64 completions at a time."""


def join_distinct(values: list[str]) -> str:
    """Return values in the order they come, those that are equal once."""
    return " to ".join(dict.fromkeys(values))


def render_measured_table(rows: list[dict[str, str]]) -> str:
    """Return the table of what a step took on the card, a row for each shape."""
    lines = []
    for shape in dict.fromkeys(row["shape"] for row in rows):
        steps = [row for row in rows if row["shape"] == shape]
        sampled = STEP_COMPLETIONS * int(steps[0]["tokens"])
        shares = [format_percent(float(row["limit"]) / float(row["update"])) for row in steps]
        costs = [f"{1e6 * float(row['update']) / sampled:.0f}" for row in steps]
        lines.append(
            [
                f"{shape}, {int(steps[0]['tokens']):,}",
                f"{steps[0]['rollout']} ({format_percent(float(steps[0]['rollout_share']))})",
                steps[0]["verify"],
                join_distinct([row["update"] for row in steps]),
                f"{steps[0]['limit']} ({join_distinct(shares)})",
                join_distinct(costs),
            ]
        )
    heads = ["shape, tokens a completion", "rollout, s (of its limit)", "verify, s", "update, s"]
    return Table([*heads, "limit of the update, s", "update, us a token"], lines).to_markdown()


def render_projected_table(rows: list[dict[str, str]]) -> str:
    """Return the table of calculated updates, a column for each shape."""
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        cells.setdefault(row["path"], {})[row["shape"]] = f"{row['seconds']} ({format_percent(float(row['share']))})"
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    heads = ["", *(f"{shape}, s (of the limit)" for shape in shapes)]
    return Table(heads, [[path, *(values[shape] for shape in shapes)] for path, values in cells.items()]).to_markdown()


def render_operations_table() -> str:
    """Return the table of operations of an update."""
    rows = tabulate_counts()
    return Table(list(rows[0]), [list(row.values()) for row in rows], text_columns=["phase"]).to_markdown()


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of one card."""
    projected = read_results("projected_update")
    shares = [100 * float(row["limit"]) / float(row["update"]) for row in H200_STEPS]
    require_claim(max(shares) < 10, "the update reaches less than a tenth of its limit")
    small = [row for row in H200_STEPS if row["shape"] == "smollm2_135m"]
    return {
        "measured_table": render_measured_table(H200_STEPS),
        "projected_table": render_projected_table(projected),
        "operations_table": render_operations_table(),
        "limit_shares": shares,
        "small_costs": [1e6 * float(row["update"]) / (STEP_COMPLETIONS * int(row["tokens"])) for row in small],
        "trl_cost": TRL_COST,
        "projected_shares": {
            shape: [100 * float(row["share"]) for row in projected if row["shape"] == shape]
            for shape in ("smollm2_135m", "qwen3_4b")
        },
    }
