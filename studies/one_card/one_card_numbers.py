"""Numbers of the page on one card: what was measured, calculated and counted.

Of the steps before the update was rewritten no file is kept: `H200_STEPS` holds them as they were printed, a line for
each of two updates of the first shape.
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

PARTS = ("rollout", "update")
"""Parts of a step whose limits are known."""

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


def render_step_table(rows: list[dict[str, str]]) -> str:
    """Return the table of steps on the card, a row for each shape and code."""
    cells = []
    for shape, tokens, code in dict.fromkeys((row["shape"], row["tokens"], row["code"]) for row in rows):
        steps = [row for row in rows if (row["shape"], row["tokens"], row["code"]) == (shape, tokens, code)]
        rollout, update = (
            join_distinct([f"{float(row[part]):.2f}" for row in steps]) for part in ("rollout", "update")
        )
        shares = {part: join_distinct([format_percent(share) for share in find_shares(steps, part)]) for part in PARTS}
        last = steps[-1]
        cells.append(
            [
                f"{shape}, {int(tokens):,}, {code}",
                f"{rollout} ({shares['rollout']})",
                join_distinct([row["verify"] for row in steps]),
                f"{update} ({shares['update']})",
                join_distinct([f"{cost:.1f}" for cost in find_update_costs(steps)]),
                last["rollout_gib"],
                last["update_gib"],
                f"{int(last['launches']):,}",
            ]
        )
    heads = ["shape, tokens, code", "rollout, s (of its limit)", "verify, s", "update, s (of its limit)"]
    heads += ["update, us a token", "GiB, rollout", "GiB, update", "launches"]
    return Table(heads, cells).to_markdown()


def find_shares(rows: list[dict[str, str]], part: str) -> list[float]:
    """Return the share of its limit that a part of each step took."""
    return [float(row[f"least_{part}"]) / float(row[part]) for row in rows]


def find_update_costs(rows: list[dict[str, str]]) -> list[float]:
    """Return the microseconds of each update for a sampled token."""
    return [1e6 * float(row["update"]) / float(row["sampled_tokens"]) for row in rows]


def render_kernel_table(rows: list[dict[str, str]]) -> str:
    """Return the table of the kinds of kernels in an update, a column for each shape, with the code of most steps."""
    cells: dict[str, dict[str, str]] = {}
    rows = [row for row in rows if row["code"] == "joined gate"]
    for row in rows:
        cell = f"{row['milliseconds']} ({format_percent(float(row['of_update']))})"
        cells.setdefault(row["kind"], {})[f"{row['shape']}, {int(row['tokens']):,}"] = cell
    shapes = list(dict.fromkeys(f"{row['shape']}, {int(row['tokens']):,}" for row in rows))
    lines = [[kind, *(values.get(shape, "") for shape in shapes)] for kind, values in cells.items()]
    return Table(["kind", *(f"{shape}: ms" for shape in shapes)], lines).to_markdown()


def render_pointwise_table(rows: list[dict[str, str]]) -> str:
    """Return the table of parts of a layer that are no products, in milliseconds."""
    heads = ["shape", "part", "halves of one tensor, ms", "tensors apart, ms", "compiled, ms", "compilation, s"]
    return Table(heads, [list(row.values()) for row in rows], text_columns=["part"]).to_markdown()


def render_projected_table(rows: list[dict[str, str]]) -> str:
    """Return the table of calculated updates, a column for each shape."""
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        cells.setdefault(row["path"], {})[row["shape"]] = f"{row['seconds']} ({format_percent(float(row['share']))})"
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    heads = ["", *(f"{shape}, s (of the limit)" for shape in shapes)]
    return Table(heads, [[path, *(values[shape] for shape in shapes)] for path, values in cells.items()]).to_markdown()


def split_shapes(rows: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Return the steps of each shape with its longest completions: of 135M parameters, and of 4B."""
    return {
        "small": [row for row in rows if row["tokens"] == "1024"],
        "large": [row for row in rows if row["shape"] == "qwen3_4b"],
    }


def is_device_time(row: dict[str, str], code: str) -> bool:
    """Whether a row of kernels is of the shortest completions, with this code, and no time of the host."""
    return row["tokens"] == "256" and row["code"] == code and "host" not in row["kind"]


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
    steps = read_results("h200_steps")
    require_claim(min(find_shares([row for row in steps if row["shape"] == "qwen3_4b"], "update")) > 0.35, "4B: met")
    require_claim(max(find_shares([row for row in steps if row["shape"] != "qwen3_4b"], "update")) < 0.15, "135M: not")
    joined, apart = (
        sum(float(row["milliseconds"]) for row in read_results("h200_kernels") if is_device_time(row, code))
        for code in ("joined gate", "gate apart")
    )
    return {
        "step_table": render_step_table(steps),
        "kernel_table": render_kernel_table(read_results("h200_kernels")),
        "pointwise_table": render_pointwise_table(read_results("h200_pointwise")),
        "tests": read_results("h200_tests"),
        "shares": {
            f"{shape}_{part}": [100 * share for share in find_shares(rows, part)]
            for shape, rows in split_shapes(steps).items()
            for part in PARTS
        },
        "short_costs": find_update_costs([row for row in steps if row["tokens"] == "256"]),
        "kernel_gain": 1 - apart / joined,
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
