"""Write the intervals of recorded comparisons anew, by the rule of today's reports.

python -m studies.recompute_intervals

Where runs collapsed, an interval is at least as wide as the interval of the sign-flip test, by area too; campaigns that
were reported before that rule hold Student's interval alone. An interval for new questions contains the interval for
the same questions; earlier ones came from a bootstrap and may not. They cannot be computed again, since the answers to
single questions were not recorded, so a cell that breaks the rule becomes empty.
"""

from pathlib import Path

from rlcredit.statistics.paired_comparison import sign_flip_paired_test
from studies import csv_rows
from studies.lead_tables import PairedValues, pair_campaign_values
from studies.numbers import STUDIES


def correct_interval(row: dict[str, str], values: PairedValues) -> dict[str, str]:
    """Return the row of a comparison with the intervals of today's rule.

    Args:
        row: Row of ``comparisons.csv``.
        values: Paired differences of the comparison, in proportions.

    """
    corrected = dict(row)
    if values.collapsed:
        for prefix, differences in {"": values.declared, "area_": values.areas}.items():
            ends = dict(zip(("low", "high"), sign_flip_paired_test(differences).test.interval, strict=False))
            if max(abs(value - float(row[prefix + name])) for name, value in ends.items()) > 1e-9:
                corrected |= {prefix + name: repr(float(value)) for name, value in ends.items()}
    if row["new_questions_low"]:
        narrower_below = float(row["new_questions_low"]) > float(corrected["low"]) + 1e-9
        narrower_above = float(row["new_questions_high"]) < float(corrected["high"]) - 1e-9
        if narrower_below or narrower_above:
            corrected |= {"new_questions_low": "", "new_questions_high": ""}
    return corrected


def correct_campaign(folder: Path) -> int:
    """Write the comparisons of a campaign anew where the rule says otherwise; return the number of changed rows."""
    path = folder / "comparisons.csv"
    rows = csv_rows.read_csv_rows(path)
    values = pair_campaign_values(folder.name)
    corrected = [correct_interval(row, pair) for row, pair in zip(rows, values, strict=True)]
    changes = sum(row != new for row, new in zip(rows, corrected, strict=True))
    if changes:
        csv_rows.write_csv_rows(path, corrected)
    return changes


def main() -> None:
    """Correct every campaign and say how many comparisons changed."""
    for path in sorted(STUDIES.glob("*/results/*/comparisons.csv")):
        if changes := correct_campaign(path.parent):
            print(f"{path.parent.name}: {changes} of {len(csv_rows.read_csv_rows(path))} comparisons")


if __name__ == "__main__":
    main()
