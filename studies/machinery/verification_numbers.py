"""Numbers of the page on what the verifier says of rewritten golds."""

from typing import Any

from docs.numbers import Rows, read_results, require_claim
from tabulate_verifier import count_misses, render_verifier_table

PROSE = "q_college_math.jsonl"
"""File whose golds are half in prose."""


def select_rows(rows: Rows, kind: str) -> Rows:
    """Return the rows of rewrites that keep a value, ``equal``, or change it, ``different``."""
    return [row for row in rows if row["kind"] == kind]


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of rewritten golds."""
    before, after, more = (read_results(name) for name in ("verifier_before", "verifier", "verifier_25"))
    elsewhere = [row for row in more if row["file"] != PROSE]
    missed, equal = count_misses(select_rows(more, "equal"))
    taken, different = count_misses(select_rows(more, "different"))
    require_claim(taken == 0, "no rewrite that changes a value is right, with 25 golds for each")
    require_claim(count_misses(select_rows(elsewhere, "equal"))[0] == 0, f"all misses are of {PROSE}")
    for kind in ("equal", "different"):
        require_claim(count_misses(select_rows(after, kind))[0] == 0, f"the verifier misjudges no {kind} rewrite")
    return {
        "table": render_verifier_table(before, after),
        "missed": missed,
        "equal": equal,
        "different": different,
    }
