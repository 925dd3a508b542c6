"""Numbers of the page on the paper's published tables."""

from typing import Any

from docs.numbers import RESULTS, require_claim
from docs.studies.published_tables.tabulate_published import MARGIN, read_published_runs, render_published_table

from rlcredit.statistics.equivalence import equivalence_test
from rlcredit.statistics.t_test import welch_t_test


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the paper's tables."""
    published = read_published_runs(RESULTS / "published.csv")
    baselines = {experiment: values for (experiment, role, _), (_, values) in published.items() if role == "baseline"}
    tests = [
        welch_t_test(values, baselines[experiment])
        for (experiment, role, _), (_, values) in published.items()
        if role != "baseline"
    ]
    require_claim(
        all(test.interval.low < 0 < test.interval.high for test in tests), "no published interval excludes zero"
    )
    equal = [p for p in (equivalence_test(test, MARGIN).p for test in tests) if p <= 0.05]
    require_claim(len(equal) == 1, "for one published difference more than a point is excluded")
    return {
        "table": render_published_table(published),
        "differences": len(tests),
        "equivalence": equal[0],
    }
