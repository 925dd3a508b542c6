"""Numbers of the page on what a measurement costs.

``scripts/bench_probes.py`` prints its table and keeps no file of it. The values stand here as they were printed.
"""

from typing import Any, NamedTuple

from docs.numbers import require_claim

from rlcredit.pages.tables import Table


class ProbeCost(NamedTuple):
    """What one measurement of a probe takes.

    Args:
        seconds: Median of the clock.
        share: Median share of a step without the probe.
        backwards: Extra backward passes.
        decoded: Tokens that were decoded for it.

    """

    seconds: float
    share: float
    backwards: int
    decoded: int = 0


COSTS = {
    "SignalStats": ProbeCost(0.001, 0.0, 0),
    "ZeroVariance": ProbeCost(0.001, 0.0, 0),
    "DecisionPivots": ProbeCost(0.001, 0.0, 0),
    "PolarityMisalignment": ProbeCost(0.000, 0.0, 0),
    "EntropyCollapse": ProbeCost(0.001, 0.0, 0),
    "QuadrantStats": ProbeCost(0.015, 0.01, 0),
    "TopTokens": ProbeCost(0.005, 0.0, 0),
    "CreditHeatmap": ProbeCost(0.004, 0.0, 0),
    "SignalHistogram": ProbeCost(0.418, 0.24, 0),
    "GradientProbe": ProbeCost(1.385, 0.72, 3),
    "CounterfactualProbe": ProbeCost(2.006, 1.07, 4),
    "NoiseFloor": ProbeCost(1.126, 0.57, 8),
    "CreditOracle": ProbeCost(7.697, 4.46, 0, 28_961),
}


def render_cost_table() -> str:
    """Return the table of all probes."""
    rows = [
        (
            f"`{name}`",
            f"{cost.seconds:.3f}",
            f"{100 * cost.share:.0f} %",
            str(cost.backwards),
            f"{cost.decoded:,}" if cost.decoded else "none",
        )
        for name, cost in COSTS.items()
    ]
    columns = ("probe", "s per measurement", "of a step without it", "extra backwards", "tokens decoded")
    return Table(columns, rows).to_markdown()


def collect_numbers() -> dict[str, Any]:
    """Return what pages say of the cost of probes."""
    oracle = COSTS["CreditOracle"].share
    require_claim(4.25 < oracle < 4.75, "the oracle costs four and a half steps")
    return {
        "table": render_cost_table(),
        "oracle_percent": 100 * oracle,
        "gradient_percent": [100 * cost.share for cost in COSTS.values() if cost.backwards],
    }
