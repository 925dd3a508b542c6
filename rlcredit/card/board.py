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

KEYS: tuple[str, ...] = ("condition", "organism", "budget", "baseline", "verdict", "commit", "command")

Row = Mapping[str, str]
"""What a card says, as text by column: keys, then each finding with ``_low`` and ``_high``."""


@dataclass(frozen=True)
class Leaderboard:
    """Rows in order.

    Args:
        rows: of one organism and budget, or of several.

    """

    rows: Sequence[Row]

    @property
    def sorted_rows(self) -> list[Row]:
        """The rows, what gained most on the way first."""
        return sorted(self.rows, key=lambda row: -parse_row_number(row, GAIN))

    @property
    def titles(self) -> dict[str, str]:
        """Findings that a row has at least, and their titles: where nothing was trained, what one batch says."""
        return {name: title for name, (title, _) in SHOWN.items() if any(each[name] for each in self.rows)}

    @property
    def units(self) -> dict[str, str]:
        """Findings and their units."""
        return {name: unit for name, (_, unit) in SHOWN.items()}


def summarise_card(card: Card) -> Row:
    """Return what the board shows of a card."""
    keys = (card.name, card.organism, card.budget, card.baseline, card.verdict, card.commit, card.command())
    cells = dict(zip(KEYS, keys, strict=True))
    for name in SHOWN:
        found = card.finding(name)
        numbers = (np.nan,) * 3 if found is None else (found.estimate, found.low, found.high)
        ends = zip(("", "_low", "_high"), numbers, strict=True)
        cells |= {f"{name}{end}": "" if np.isnan(number) else f"{number:.6g}" for end, number in ends}
    return cells


def add_shipped_rows(cards: Sequence[Card]) -> list[Row]:
    """Return rows of cards, beside those that are shipped of the same organisms, budget and baseline.

    Args:
        cards: of one budget and baseline; each takes the place of a shipped one of the same condition and organism. A
            baseline or an organism of one's own is not that which is shipped, whatever it is called.

    """
    measured = {(card.budget, card.baseline, card.organism) for card in cards if card.has_shipped_names}
    beside = [each for each in _read_shipped_rows() if (each["budget"], each["baseline"], each["organism"]) in measured]
    return keep_latest_rows([*beside, *map(summarise_card, cards)])


def keep_latest_rows(rows: Sequence[Row]) -> list[Row]:
    """Return rows with the last one only of every condition, organism and budget."""
    return list({(each["condition"], each["organism"], each["budget"]): each for each in rows}.values())


def group_rows_by_policy(rows: Sequence[Row]) -> dict[str, Leaderboard]:
    """Return the board of every organism, by its name."""
    organisms = dict.fromkeys(each["organism"] for each in rows)
    return {name: Leaderboard([each for each in rows if each["organism"] == name]) for name in organisms}


def _read_shipped_rows() -> list[Row]:
    if not SHIPPED.is_file():
        return []
    with SHIPPED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def parse_row_number(each: Row, name: str, otherwise: float = 0.0) -> float:
    """Return a number of a row, or what stands for one that is missing."""
    return float(each[name]) if each[name] else otherwise
