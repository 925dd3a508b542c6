"""Numbers of the page on what a step costs.

Of the update and of the oracle before this decoder no file is kept: `UPDATE_SECONDS` and `ORACLE_SECONDS` hold what was
measured of both sides, round by round.
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from benchmarks import format_median_and_range, round_ratios
from docs.numbers import RESULTS, read_results, require_claim, student_estimate

from rlcredit.pages.tables import Table

UPDATE_SECONDS = [(0.351, 0.177), (0.355, 0.171), (0.350, 0.171), (0.344, 0.174), (0.342, 0.174)]
"""CPU seconds of one forward and backward pass before and now, round by round."""
ORACLE_SECONDS = [(3.99, 2.08), (3.63, 1.73), (3.52, 1.85), (3.63, 1.77), (3.64, 1.83)]
"""CPU seconds of the oracle before and now, round by round."""
HEAD_SIZES = {"384": "4096 x 64", "32000": "1024 x 256", "151936": "1024 x 256"}
"""Positions and width by vocabulary."""
STEP_PARTS = ("rollout", "verify", "credit", "update")


def read_measurements(name: str) -> dict[str, Any]:
    """Return what a benchmark has written."""
    return json.loads((RESULTS / "performance" / f"{name}.json").read_text(encoding="utf-8"))


def render_trl_row(title: str, steps: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the cells of one comparison with TRL."""
    both = [format_median_and_range(steps[side]) for side in ("trl", "ours")]
    return [title, *both, format_median_and_range(round_ratios(steps["ours"], steps["trl"]), 2)]


def collect_trl_numbers() -> dict[str, Any]:
    """Return how a step compares with one of TRL."""
    one, two = (read_measurements(name)["step"] for name in ("trl_1", "trl_2"))
    rows = [render_trl_row("one thread, 5 rounds", one), render_trl_row("two threads, 3 rounds", two)]
    return {
        "trl_table": Table(["", "TRL, seconds a step", "rlcredit", "rlcredit / TRL"], rows).to_markdown(),
        "shares_of_trl": [statistics.median(round_ratios(each["ours"], each["trl"])) for each in (one, two)],
        "times_of_trl": [statistics.median(each["trl"]) / statistics.median(each["ours"]) for each in (one, two)],
    }


def collect_step_numbers() -> dict[str, Any]:
    """Return where the time of a step goes."""
    measured = read_measurements("step")
    seconds = {part: measured["step"][f"time/{part}"] for part in STEP_PARTS}
    total = sum(seconds.values())
    return {
        "torch": measured["machine"]["torch"].partition("+")[0],
        "step_seconds": total,
        "part_seconds": seconds,
        "part_shares": {part: each / total for part, each in seconds.items()},
        "peak": measured["peak"] / 1e9,
        "used": {part: measured["least"][f"time/{part}"] / seconds[part] for part in ("rollout", "update")},
    }


def render_decoding_table() -> str:
    """Return the table of ways to decode; large values have fewer digits."""
    seconds = read_measurements("decode")["decode"]
    rows = []
    for side, values in seconds.items():
        slow = side == "continuous"
        ratios = format_median_and_range(round_ratios(values, seconds["fused"]), 0 if slow else 1)
        rows.append([side, format_median_and_range(values, 1 if slow else 3), "1" if side == "fused" else ratios])
    return Table(["", "CPU seconds", "of fused"], rows).to_markdown()


def render_update_table() -> str:
    """Return the table of the update before and now."""
    rows = [
        [str(number), f"{before:.3f}", f"{now:.3f}", f"{now / before:.2f}"]
        for number, (before, now) in enumerate(UPDATE_SECONDS, 1)
    ]
    return Table(["round", "before", "now", "now / before"], rows).to_markdown()


def render_oracle_table() -> str:
    """Return the table of the oracle before and now."""
    rows = [
        [str(number), f"{before:.2f}", f"{now:.2f}", f"{before / now:.1f}"]
        for number, (before, now) in enumerate(ORACLE_SECONDS, 1)
    ]
    return Table(["round", "before", "now", "before / now"], rows).to_markdown()


def render_head_table() -> str:
    """Return the table of the output head."""
    rows = []
    for vocabulary, sides in read_measurements("head")["head"].items():
        alone = sides["alone"][0]["seconds"]
        for side, (value,) in sides.items():
            errors = " ".join(f"{value[f'error_{name}']:.0e}" for name in ("logprob", "entropy", "gradient"))
            cost = [f"{value['seconds']:.3f}", f"{value['seconds'] / alone:.2f}", f"{value['mib']:.0f}"]
            rows.append([vocabulary, HEAD_SIZES[vocabulary], side, *cost, errors])
    return Table(["V", "N x D", "head", "CPU seconds", "of alone", "MiB", "errors"], rows).to_markdown()


def collect_stack_numbers() -> dict[str, Any]:
    """Return what a stack of six operators takes."""
    measured = read_measurements("stack")
    six = sum(measured["operators"].values())
    credit, step = measured["credit"], measured["step"]
    require_claim(credit / step > 0.01, "six operators take more than 1 % of a step, which was the aim")
    rows = [[name, f"{1000 * seconds:.1f}"] for name, seconds in measured["operators"].items()]
    rows += [
        ["all six", f"{1000 * six:.1f}"],
        [
            "token by token, in plain Python",
            f"{1000 * measured['token_by_token']:,.0f} ({measured['token_by_token'] / six:.0f} times)",
        ],
        [
            "all six in a step of the embedded policy",
            f"{1000 * credit:.1f} of {1000 * step:.0f} ({100 * credit / step:.1f} %)",
        ],
    ]
    return {"stack_table": Table(["256 completions of up to 2,048 tokens, 386,365 sampled", "ms"], rows).to_markdown()}


def render_growth_table() -> str:
    """Return the table of how a step grows."""
    rows = read_measurements("growth")["growth"]
    return Table(
        [name.strip() for name in rows[0]], [[str(value) for value in row.values()] for row in rows]
    ).to_markdown()


ON_H100 = ("smollm2_135m", "qwen3_4b")
"""Shapes that have been trained on an H100; the second one beside another process, which the page says."""


def collect_accelerator_numbers() -> dict[str, Any]:
    """Return what a step takes on an H100."""
    rows, clean = [], read_measurements(f"h100_{ON_H100[0]}")["limits"]
    for shape in ON_H100:
        measured = read_measurements(f"h100_{shape}")
        found, own = measured["shapes"][shape]["ours"], measured["limits"]
        # what was multiplied and read does not depend on the ceilings that were measured beside it
        least = {
            "rollout": found["least"]["rollout"] * own["bytes"] / clean["bytes"],
            "update": found["least"]["update"] * own["operations"] / clean["operations"],
        }
        seconds = {part: statistics.median(found["seconds"][part]) for part in STEP_PARTS}
        step = statistics.median(found["step"])
        cells = [f"{seconds[part]:.1f} ({least[part] / seconds[part]:.0%})" for part in ("rollout", "update")]
        sampled = 256 * found["completion_length"]
        peaks = [f"{found['bytes'][part] / 2**30:.1f}" for part in ("rollout", "update")]
        rows.append([shape, *cells, f"{step:.1f}", f"{sampled / step:,.0f}", *peaks])
    heads = ["shape", "rollout, s", "update, s", "step, s", "sampled tokens a second", "GiB, rollout", "GiB, update"]
    return {
        "accelerator_table": Table(heads, rows).to_markdown(),
        "accelerator_limits": {"operations": clean["operations"] / 1e12, "bytes": clean["bytes"] / 1e12},
        "accelerator": read_measurements(f"h100_{ON_H100[0]}")["machine"],
    }


def collect_ahead_numbers() -> dict[str, Any]:
    """Return how runs whose rollouts are decoded ahead compare with those of the same seeds that decode in a step."""
    rows = read_results("performance/ahead")
    columns = {
        name: [[float(row[name] or 0) for row in rows if row["condition"] == kind] for kind in ("in_step", "ahead")]
        for name in ("pass_at_1", "waited", "rollout", "update", "tokens_per_second")
    }
    ends = columns["pass_at_1"]
    lines = [
        [
            title,
            f"{statistics.mean(ends[side]):.3f}",
            format_median_and_range(columns["waited"][side], 2) if any(columns["waited"][side]) else "in the rollout",
            *(format_median_and_range(columns[name][side], 2) for name in ("rollout", "update")),
            format_median_and_range(columns["tokens_per_second"][side], 0),
        ]
        for side, title in enumerate(("decoded in its step", "decoded one step ahead"))
    ]
    heads = ["rollout", "pass@1 at the end", "waited, s", "rollout, s", "update, s", "tokens a second"]
    return {
        "ahead_table": Table(heads, lines).to_markdown(),
        "ahead_lead": student_estimate(100 * (np.array(ends[1]) - np.array(ends[0]))),
        "ahead_speed": round_ratios(columns["tokens_per_second"][1], columns["tokens_per_second"][0]),
    }


STEP_HALVES, MEMORY_SIDES = ("rollout", "update"), ("forecast", "measured")
"""Phases of a step that take memory in turn, and what is compared in each."""


def collect_memory_numbers() -> dict[str, Any]:
    """Return how far the forecast of memory is from what runs take."""
    measured = read_measurements("memory")["memory"]
    rows, ratios = [], []
    for each in measured.values():
        run, title = each["run"], each["run"]["title"]
        for phase in ("weights", "rollout", "update"):
            forecast, taken = (each[phase][side] for side in MEMORY_SIDES)
            ratios.append(forecast / taken)
            sizes = [f"{value / 2**20:,.0f}" for value in (forecast, taken)]
            rows.append([title, run["model"], phase, *sizes, f"{ratios[-1]:.2f}"])
            title = run["model"] = ""
    peaks = [[max(each[phase][side] for phase in STEP_HALVES) for each in measured.values()] for side in MEMORY_SIDES]
    deviation = max(abs(forecast / taken - 1) for forecast, taken in zip(*peaks, strict=True))
    require_claim(deviation < 0.1, "the peak of memory is forecast within 10 % of what is measured")
    furthest = max(ratios, key=lambda ratio: abs(ratio - 1))
    low = measured["4bit"]["rollout"]
    require_claim(furthest == low["forecast"] / low["measured"], "the rollout under 4 bits is furthest off")
    columns = ["", "model", "phase", "forecast, MiB", "measured, MiB", "forecast / measured"]
    return {
        "memory_table": Table(columns, rows).to_markdown(),
        "memory_deviation": deviation,
        "memory_furthest": 1 - furthest,
        "libraries": statistics.median(each["libraries"] for each in measured.values()) / 2**20,
    }


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the cost of a step."""
    return {
        **collect_trl_numbers(),
        **collect_step_numbers(),
        **collect_stack_numbers(),
        **collect_accelerator_numbers(),
        **collect_ahead_numbers(),
        **collect_memory_numbers(),
        "decoding_table": render_decoding_table(),
        "update_table": render_update_table(),
        "oracle_table": render_oracle_table(),
        "head_table": render_head_table(),
        "growth_table": render_growth_table(),
    }
