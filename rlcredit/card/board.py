"""What cards say, a row each: the rows that are shipped, and those beside which a card of one's own stands."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlcredit.card.card import Card

SHIPPED = Path(__file__).with_name("shipped.csv")
"""Cards of what is shipped, as `rlcredit card --shipped` has made them."""

SHOWN = {
    "gain": ("gain", "points"),
    "area_gain": ("on the way", "points"),
    "steps": ("steps to half", "steps"),
    "collapses": ("collapsed", "number"),
    "entropy": ("entropy", "nats"),
    "cosine_within": ("truth inside", "number"),
    "fork_area": ("fork area", "number"),
    "wrong_signs": ("wrong signs", "share"),
    "angle": ("angle", "degrees"),
    "agreement_gained": ("less noise", "number"),
    "moved": ("moved", "share"),
    "confidence": ("on the likely", "number"),
    "credit_time": ("of a step", "share"),
}
"""Findings on the board, with titles and units."""

GAIN = "area_gain"
"""By which rows are ordered, and what is to be foretold: the paired gain over all of training."""

KEYS: tuple[str, ...] = ("condition", "organism", "budget", "baseline", "verdict", "commit")

Row = Mapping[str, str]
"""What a card says, as text by column: keys, then each finding with ``_low`` and ``_high``."""


@dataclass(frozen=True)
class Board:
    """Rows in order.

    Args:
        rows: of one organism and budget, or of several.

    """

    rows: Sequence[Row]

    @property
    def ordered(self) -> list[Row]:
        """The rows, what gained most on the way first."""
        return sorted(self.rows, key=lambda row: -number(row, GAIN))

    @property
    def titles(self) -> dict[str, str]:
        """Findings and their titles."""
        return {name: title for name, (title, _) in SHOWN.items()}

    @property
    def units(self) -> dict[str, str]:
        """Findings and their units."""
        return {name: unit for name, (_, unit) in SHOWN.items()}


def row(card: Card) -> Row:
    """Return what the board shows of a card."""
    keys = (card.name, card.organism, card.budget, card.baseline, card.verdict, card.commit)
    cells = dict(zip(KEYS, keys, strict=True))
    for name in SHOWN:
        found = card.finding(name)
        numbers = (np.nan,) * 3 if found is None else (found.estimate, found.low, found.high)
        ends = zip(("", "_low", "_high"), numbers, strict=True)
        cells |= {f"{name}{end}": "" if np.isnan(number) else f"{number:.6g}" for end, number in ends}
    return cells


def rows_of(organism: str, budget: str, but: str = "") -> list[Row]:
    """Return the shipped rows of an organism and a budget.

    Args:
        organism: its name.
        budget: its name.
        but: a condition that is left out.

    """
    if not SHIPPED.is_file():
        return []
    with SHIPPED.open(encoding="utf-8", newline="") as file:
        kept = list(csv.DictReader(file))
    return [
        each for each in kept if (each["organism"], each["budget"]) == (organism, budget) and each["condition"] != but
    ]


def number(each: Row, name: str, otherwise: float = 0.0) -> float:
    """Return a number of a row, or what stands for one that is missing."""
    return float(each[name]) if each[name] else otherwise
