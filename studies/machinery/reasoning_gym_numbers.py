"""Numbers of the page on answers that are none."""

from typing import Any

from docs.numbers import read_results, require_claim
from reasoning_gym_battery import BESIDE, CONSTANTS, DENIALS, HEDGES, KINDS, WITHIN, render_battery_table

from rlcredit.verification.reasoning_gym_answers import SHAPES


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the battery."""
    rows = read_results("reasoning_gym_battery")
    taking = [row for row in rows if any(int(row[f"{kind}_scorer"]) for kind in KINDS)]
    for right, asked in (("references_right", "references"), ("others_right", "others")):
        require_claim(all(row[right] == row[asked] for row in rows), "references, and other right answers, are right")
    return {
        "data_sets": len(rows),
        "taking": len(taking),
        "with_a_shape": len(SHAPES),
        "candidates": {
            "constant": len(CONSTANTS),
            "hedge": len(HEDGES),
            "denial": len(DENIALS),
            "beside": len(BESIDE),
            "within": len(WITHIN),
        },
        "table": render_battery_table(rows),
    }
