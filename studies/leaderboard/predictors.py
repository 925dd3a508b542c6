"""Which measurements taken before training predict training gains: rank correlations over cards."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rlcredit.cards.card import BASELINE_VERDICT, NO_DIFFERENCE
from rlcredit.cards.ranking import GAIN_COLUMN, Row
from rlcredit.pages.number_formats import format_with_interval
from rlcredit.pages.tables import Table
from rlcredit.statistics.intervals import Interval, jackknife_interval

PROBES = {
    "moved": "credit moved",
    "angle": "angle to the baseline's gradient",
    "agreement_gained": "agreement of two batches, beyond the baseline's",
    "cosine_within": "cosine with true credit inside completions",
    "fork_area": "area: credit finds the tokens that decide",
    "wrong_signs": "wrong signs on tokens that decide",
    "confidence": "credit on what is likely, which costs entropy",
    "credit_time": "share of a step",
}
"""Findings that are there before any run, with their titles; the last one should predict nothing."""

FEWEST = 6
"""Conditions with fewer cards have no order to speak of."""

ALIKE = 0.5
"""Nor have those of which a larger share than this have the very same value."""

Cells = Mapping[tuple[str, str], tuple[float, float]]
"""A measurement and an outcome, by condition and test policy."""


@dataclass(frozen=True)
class PredictorCorrelation:
    """How well one measurement predicts one outcome.

    Args:
        probe: Measurement that predicts.
        outcome: Outcome predicted: `gain`, or `size` of it, whatever its sign.
        correlation: Mean over test policies of Spearman's rank correlation over conditions.
        interval: Jackknife interval of the correlation, leaving out one condition at a time on all test policies.
        cards: Number of cards that were used.
        organisms: Number of test policies on which the conditions have an order.

    """

    probe: str
    outcome: str
    correlation: float
    interval: Interval
    cards: int
    organisms: int

    def __str__(self) -> str:
        """Return the correlation with its interval, as text."""
        return format_with_interval(self.correlation, self.interval.low, self.interval.high, "+.2f")

    def to_row(self) -> Row:
        """Return the correlation as text by column."""
        numbers = {"correlation": self.correlation, "low": self.interval.low, "high": self.interval.high}
        written = {name: f"{number:.6g}" for name, number in numbers.items()}
        counts = {"cards": str(self.cards), "organisms": str(self.organisms)}
        return {"probe": self.probe, "outcome": self.outcome, **written, **counts}


def correlate_predictors(rows: Sequence[Row]) -> Iterator[PredictorCorrelation]:
    """Yield how well every measurement predicts the gain, and its size; nothing if there are too few conditions.

    The correlation is taken on each organism alone: that one of them is harder than another foretells nothing about
    operators. Conditions are what is left out for the interval, since those of one name resemble each other everywhere.
    Baselines, and what makes no difference on an organism, gain nothing by definition; they have no part in it. Nor has
    an organism on which most conditions measure or gain the same; which these are is taken as given by the interval.

    Args:
        rows: Rows of the leaderboard, a condition once per test policy.

    """
    others = [row for row in rows if row["verdict"] not in (BASELINE_VERDICT, NO_DIFFERENCE)]
    for probe in PROBES:
        cells = _select_rankable_policies(
            {
                (row["condition"], row["organism"]): (float(row[probe]), float(row[GAIN_COLUMN]))
                for row in others
                if row.get(probe) and row[GAIN_COLUMN]
            }
        )
        conditions = list(dict.fromkeys(condition for condition, _ in cells))
        if len(conditions) < FEWEST:
            continue
        for outcome, of in (("gain", np.asarray), ("size", np.abs)):
            pairs = {key: (measured, float(of(gain))) for key, (measured, gain) in cells.items()}
            whole = _mean_correlation(pairs, conditions)
            without = [_mean_correlation(pairs, [each for each in conditions if each != left]) for left in conditions]
            around = jackknife_interval(whole, np.array(without))
            interval = Interval(max(-1.0, around.low), min(1.0, around.high), around.level)
            yield PredictorCorrelation(probe, outcome, whole, interval, len(cells), len({place for _, place in cells}))


def make_predictor_table(correlations: Sequence[PredictorCorrelation]) -> Table:
    """Return a table with one line per measurement: its rank correlation with the gain, and with its size."""
    by_probe: dict[str, list[PredictorCorrelation]] = {}
    for each in correlations:
        by_probe.setdefault(each.probe, []).append(each)
    rows = [
        (PROBES[probe], str(gain), str(size), f"{gain.cards}, {gain.organisms}")
        for probe, (gain, size) in by_probe.items()
    ]
    return Table(("measurement before training", "with the gain", "with its size", "cards, organisms"), rows)


def _select_rankable_policies(cells: Cells) -> Cells:
    """Return the cells of test policies with enough conditions, most of which differ in measurement and gain."""
    kept: list[str] = []
    for organism in dict.fromkeys(organism for _, organism in cells):
        pairs = [pair for (_, place), pair in cells.items() if place == organism]
        quantities = [[value for value, _ in pairs], [abs(gain) for _, gain in pairs]]
        alike = max(max(Counter(values).values()) for values in quantities)
        if len(pairs) >= FEWEST and alike <= ALIKE * len(pairs):
            kept.append(organism)
    return {key: pair for key, pair in cells.items() if key[1] in kept}


def _mean_correlation(cells: Cells, conditions: Sequence[str]) -> float:
    """Return the mean over test policies of the rank correlation of two quantities."""
    organisms = dict.fromkeys(organism for _, organism in cells)
    chosen = (np.array([cells[name, each] for name in conditions if (name, each) in cells]) for each in organisms)
    return float(np.mean([spearman_correlation(pairs[:, 0], pairs[:, 1]) for pairs in chosen]))


def spearman_correlation(left: ArrayLike, right: ArrayLike) -> float:
    """Return the correlation of the ranks of two quantities, equal values sharing the mean of their ranks.

    Args:
        left: Values of one quantity, shape ``(n,)``, at least two of them different.
        right: Values of the other quantity, shape ``(n,)``, at least two of them different.

    Returns:
        From -1 to 1; NaN if one of them is constant.

    Example:
        >>> spearman_correlation([1, 2, 3, 4], [10, 100, 90, 1000])
        0.8

    """
    from scipy.stats import rankdata  # noqa: PLC0415  (it takes half a second)

    ranks = [rankdata(side) for side in (left, right)]
    if any(np.ptp(each) == 0 for each in ranks):
        return float("nan")
    return round(float(np.corrcoef(*ranks)[0, 1]), 12)
