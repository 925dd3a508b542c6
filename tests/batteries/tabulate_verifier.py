"""Tabulate how the mathematics verifier judges rewritten golds, as ``measure_verifier.py`` has counted it.

    python tests/batteries/tabulate_verifier.py studies/machinery/results/verifier_before.csv
    python tests/batteries/tabulate_verifier.py BEFORE.csv AFTER.csv --rewrites

Two files are of two versions of the verifier; math-verify alone is taken from the second.
"""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

from rlcredit.pages.tables import Table

Row = dict[str, str]


def count_misses(rows: Sequence[Row], right: str = "right") -> tuple[int, int]:
    """Return how many cases are judged otherwise than they should be, and of how many.

    Args:
        rows: Rows of one kind, ``equal`` or ``different``.
        right: Column that counts the cases judged right.

    """
    cases, judged = (sum(int(row[name]) for row in rows) for name in ("cases", right))
    return (cases - judged if rows and rows[0]["kind"] == "equal" else judged), cases


def format_miss_share(misses: int, cases: int) -> str:
    """Write misses with their share; nothing where there is no case."""
    return f"{misses} ({misses / cases:.1%})".replace("%", " %") if cases else ""


def render_verifier_table(*versions: Sequence[Row]) -> str:
    """Return the table of all files: equal cases not right and different ones right, by versions of the verifier."""
    titles = ["before", "after"] if len(versions) == 2 else ["rlcredit"] * len(versions)
    heads = ["cases", *titles, "math-verify alone"]
    columns = ["file", *(f"{kind}: {head}" for kind in ("equal, not right", "different, right") for head in heads)]
    lines = []
    for file in [*dict.fromkeys(row["file"] for row in versions[-1]), ""]:
        cells = []
        for kind in ("equal", "different"):
            own = [
                [row for row in rows if row["kind"] == kind and row["file"] == (file or row["file"])]
                for rows in versions
            ]
            cells.append(str(count_misses(own[-1])[1]))
            cells += [format_miss_share(*count_misses(rows)) for rows in own]
            cells.append(format_miss_share(*count_misses(own[-1], "math_verify_right")))
        lines.append([f"`{file}`" if file else "all", *cells])
    return Table(columns, lines).to_markdown()


def render_rewrite_table(*versions: Sequence[Row]) -> str:
    """Return the table of the rewrites that any version misjudges, over all files."""
    titles = ["before", "after"] if len(versions) == 2 else ["rlcredit"] * len(versions)
    lines = []
    for kind, name in dict.fromkeys((row["kind"], row["rewrite"]) for row in versions[-1]):
        own = [[row for row in rows if (row["kind"], row["rewrite"]) == (kind, name)] for rows in versions]
        missed = [count_misses(rows)[0] for rows in own]
        if any(missed):
            alone, cases = count_misses(own[-1], "math_verify_right")
            lines.append([kind, name, *map(str, (cases, *missed, alone))])
    return Table(["kind", "rewrite", "cases", *titles, "math-verify alone"], lines).to_markdown()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="one, or the one before and the one after a change")
    parser.add_argument("--rewrites", action="store_true", help="also the rewrites that are misjudged")
    args = parser.parse_args()
    versions = [list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) for path in args.files]
    print(render_verifier_table(*versions))
    if args.rewrites:
        print("\n" + render_rewrite_table(*versions))


if __name__ == "__main__":
    main()
