"""The best value of a grid, and why the choice may be doubtful."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class GridChoice:
    """Hold the best value of a grid.

    Args:
        best: Value with the highest mean; of equal ones the lowest.
        edge: End of the grid at which it lies, so that a value beyond may be better; None inside, or in a grid of one.
        tied: Values whose mean is at most one standard error of the paired differences lower.

    """

    best: float
    edge: Literal["lowest", "highest"] | None
    tied: tuple[float, ...]

    def describe_doubts(self, name: str) -> list[str]:
        """Return one sentence about each doubt, beginning with a name.

        Example:
            >>> GridChoice(4.0, "highest", (2.0,)).describe_doubts("flat")
            ['flat: x 4 is the highest of its grid; a higher one may be better.', 'flat: x 2 is tied with x 4.']

        """
        directions = {"lowest": "lower", "highest": "higher"}
        sentences = []
        if self.edge:
            beyond = f"a {directions[self.edge]} one may be better"
            sentences.append(f"{name}: x {self.best:g} is the {self.edge} of its grid; {beyond}.")
        if self.tied:
            ties = " and ".join(f"x {value:g}" for value in self.tied)
            sentences.append(f"{name}: {ties} {'is' if len(self.tied) == 1 else 'are'} tied with x {self.best:g}.")
        return sentences


def choose_grid_value(results: Mapping[float, Sequence[float]]) -> GridChoice:
    """Choose the value of a grid whose runs end best, and say whether the choice is doubtful.

    Args:
        results: Results of the runs with each value, more is better, in the same order of seeds for all values.

    Example:
        >>> choose_grid_value({0.5: [0.3, 0.4], 1.0: [0.7, 0.9], 2.0: [0.69, 0.93]})
        GridChoice(best=2.0, edge='highest', tied=(1.0,))

    """
    rows = {value: np.asarray(runs, dtype=np.float64) for value, runs in sorted(results.items())}
    best = max(rows, key=lambda value: rows[value].mean())
    ties = []
    for value, row in rows.items():
        differences = rows[best] - row
        if value != best and len(row) > 1 and differences.mean() <= differences.std(ddof=1) / np.sqrt(len(row)):
            ties.append(value)
    ends = {min(rows): "lowest", max(rows): "highest"} if len(rows) > 1 else {}
    return GridChoice(best, ends.get(best), tuple(ties))  # pyright: ignore[reportArgumentType]
