"""Write the intervals of recorded comparisons anew, by the rule of today's reports.

python -m studies.recompute_intervals

Where runs collapsed, an interval is at least as wide as the interval of the sign-flip test; campaigns that were
reported before that rule hold Student's interval alone. An interval for new questions contains the interval for the
same questions; earlier ones came from a bootstrap and may not. They cannot be computed again, since the answers to
single questions were not recorded, so a cell that breaks the rule becomes empty.
"""

from pathlib import Path

import numpy as np

from rlcredit.statistics.paired_comparison import sign_flip_paired_test
from studies import csv_rows
from studies.lead_tables import pair_campaign_values
from studies.numbers import STUDIES


def correct_interval(row: dict[str, str], differences: np.ndarray) -> dict[str, str]:
    """Return the row of a comparison with the intervals of today's rule.

    Args:
        row: Row of ``comparisons.csv``.
        differences: Paired differences of what the campaign compares, in proportions.

    """
    corrected = dict(row)
    if int(row["collapsed"]) or int(row["baseline_collapsed"]):
        low, high, _ = sign_flip_paired_test(differences).test.interval
        if max(abs(low - float(row["low"])), abs(high - float(row["high"]))) > 1e-9:
            corrected |= {"low": repr(float(low)), "high": repr(float(high))}
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
    corrected = [correct_interval(row, pair.declared) for row, pair in zip(rows, values, strict=True)]
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
