"""Rows of the leaderboard and their order, by the mean gain of each condition corrected for multiple comparisons."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlcredit.campaign.declaration import ALPHA
from rlcredit.cards.budget import CARD_BUDGETS
from rlcredit.cards.card import NO_DIFFERENCE, Card
from rlcredit.statistics.adjusted_p import holm_adjusted_p
from rlcredit.statistics.t_test import TTest, mean_difference_t_test, t_test

SHIPPED_CARDS = Path(__file__).with_name("shipped.csv")
"""Cards of what is shipped, as `rlcredit card --shipped` has made them."""

BOARD_FINDINGS = {
    "gain": (
        "gain at the end",
        "points",
        "held-out pass@1 after the last step, minus that of the baseline's pair",
    ),
    "area_gain": ("gain on the way", "points", "the same difference, averaged over the whole run; the board's order"),
    "steps": ("steps to half", "steps", "steps until half of the baseline's gain is reached"),
    "collapses": ("collapsed", "number", "runs that end more than 10 points below the median run"),
    "entropy": ("entropy", "nats", "entropy per held-out token after the last step"),
    "cosine_within": ("true credit", "number", "cosine between credit and measured true credit, inside completions"),
    "fork_area": (
        "forks found",
        "number",
        "chance that a deciding token has more credit than another; 0.5 is luck",
    ),
    "wrong_signs": ("wrong signs", "share", "tokens that decide whose credit has the wrong sign"),
    "angle": ("angle", "degrees", "angle between the gradient and the baseline's on the same batch"),
    "agreement_gained": ("less noise", "number", "by how much better two batches agree about the gradient"),
    "moved": ("credit moved", "share", "credit with another place or sign than the baseline's"),
    "confidence": ("on the likely", "number", "correlation of credit with a token's log-probability; costs entropy"),
    "credit_time": ("share of a step", "share", "time of a training step that assigning credit takes"),
}
"""Findings on the leaderboard, with titles, units and meanings."""

GAIN_COLUMN = "area_gain"
"""The finding by which rows are ordered: the paired gain over all of training."""

KEY_COLUMNS: tuple[str, ...] = ("condition", "organism", "budget", "baseline", "verdict", "commit", "command")

Row = Mapping[str, str]
"""What a card says, as text by column: keys, then each finding with ``_low`` and ``_high``."""


@dataclass(frozen=True)
class Leaderboard:
    """Rows of a leaderboard.

    Args:
        rows: Rows of one test policy and budget, or of several.

    """

    rows: Sequence[Row]

    @property
    def sorted_rows(self) -> list[Row]:
        """Rows sorted by their gain during training, largest first."""
        return sorted(self.rows, key=lambda row: -parse_row_number(row, GAIN_COLUMN))

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the findings that every row has; measurements on one batch where nothing was trained."""
        return {name: title for name, (title, *_) in BOARD_FINDINGS.items() if any(row[name] for row in self.rows)}

    @property
    def units(self) -> dict[str, str]:
        """Units of the findings, by name."""
        return {name: unit for name, (_, unit, _) in BOARD_FINDINGS.items()}


def summarise_card(card: Card) -> Row:
    """Return the row of a card on the leaderboard."""
    keys = (card.name, card.organism, card.budget, card.baseline, card.verdict, card.commit, card.command())
    cells = dict(zip(KEY_COLUMNS, keys, strict=True))
    for name in BOARD_FINDINGS:
        finding = card.finding(name)
        numbers = (finding.estimate, finding.low, finding.high) if finding else (np.nan,) * 3
        ends = zip(("", "_low", "_high"), numbers, strict=True)
        cells |= {f"{name}{end}": "" if np.isnan(number) else f"{number:.6g}" for end, number in ends}
    return cells


def add_shipped_rows(cards: Sequence[Card]) -> list[Row]:
    """Return the rows of cards, added to the shipped rows with the same test policies, budget and baseline.

    Args:
        cards: Cards of one budget and baseline; each replaces the shipped card of the same condition and test policy. A
            baseline or a test policy of the user's own is never taken for a shipped one, whatever its name.

    """
    card_keys = {(card.budget, card.baseline, card.organism) for card in cards if card.has_shipped_names}
    shipped_rows = [
        row for row in _read_shipped_rows() if (row["budget"], row["baseline"], row["organism"]) in card_keys
    ]
    return keep_latest_rows([*shipped_rows, *map(summarise_card, cards)])


def keep_latest_rows(rows: Sequence[Row]) -> list[Row]:
    """Return rows, the last one only for each condition, test policy and budget."""
    return list({(row["condition"], row["organism"], row["budget"]): row for row in rows}.values())


def group_rows_by_policy(rows: Sequence[Row]) -> dict[str, Leaderboard]:
    """Return the leaderboard of each test policy, by its name."""
    organisms = dict.fromkeys(row["organism"] for row in rows)
    return {name: Leaderboard([row for row in rows if row["organism"] == name]) for name in organisms}


def _read_shipped_rows() -> list[Row]:
    if not SHIPPED_CARDS.is_file():
        return []
    with SHIPPED_CARDS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def parse_row_number(row: Row, name: str, otherwise: float = 0.0) -> float:
    """Return a number of a row, or a default if it is missing."""
    return float(row[name]) if row[name] else otherwise


@dataclass(frozen=True)
class RankedCondition:
    """A condition on the leaderboard.

    Args:
        name: Name of the condition.
        cells: Rows of the condition, by test policy.
        mean: Mean over these test policies of the paired gain during training, in points; None for the baseline and
            without runs.
        p: P-value of that mean, adjusted by Holm for all conditions on the leaderboard; one where there is no mean.

    """

    name: str
    cells: dict[str, Row]
    mean: TTest | None
    p: float = 1.0

    @property
    def gain(self) -> float:
        """Mean gain, zero if there is none."""
        return self.mean.difference if self.mean else 0.0

    @property
    def is_significant(self) -> bool:
        """Whether the mean gain differs from zero after correction."""
        return self.p <= ALPHA


def rank_conditions(rows: Sequence[Row]) -> list[RankedCondition]:
    """Return every condition of a leaderboard, largest mean gain first.

    Args:
        rows: Rows of all conditions and test policies, one of each.

    """
    by_name: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_name.setdefault(row["condition"], {})[row["organism"]] = row
    means = {name: _average_gain_tests(list(cells.values())) for name, cells in by_name.items()}
    p_values = {name: mean.p for name, mean in means.items() if mean}
    adjusted_p = dict(zip(p_values, holm_adjusted_p(list(p_values.values())).tolist(), strict=True))
    conditions = [
        RankedCondition(name, cells, means[name], adjusted_p.get(name, 1.0)) for name, cells in by_name.items()
    ]
    return sorted(conditions, key=lambda condition: -condition.gain)


def reconstruct_gain_test(row: Row) -> TTest | None:
    """Return the paired gain of a row as a t test, recovered from interval and number of pairs; None without one."""
    if not row[f"{GAIN_COLUMN}_low"]:
        return None
    df = len(CARD_BUDGETS[row["budget"]].seeds) - 1
    width = parse_row_number(row, f"{GAIN_COLUMN}_high") - parse_row_number(row, f"{GAIN_COLUMN}_low")
    unit = t_test(0.0, 1.0, df).interval
    return t_test(parse_row_number(row, GAIN_COLUMN), width / (unit.high - unit.low), df)


def is_gain_significant(test: TTest) -> bool:
    """Whether a single gain differs from zero, without correction."""
    return test.p <= ALPHA


def summarise_leaderboard(rows: Sequence[Row]) -> str:
    """Return in words how many gains are significant, per cell and over all test policies; empty without runs."""
    cells = [test for row in rows if row["verdict"] != NO_DIFFERENCE and (test := reconstruct_gain_test(row))]
    if not cells:
        return ""
    idle = sum(row["verdict"] == NO_DIFFERENCE for row in rows)
    idle_text = f" ({idle} more make no difference)" if idle else ""
    gain_count, loss_count = (
        sum(sign * test.difference > 0 and is_gain_significant(test) for test in cells) for sign in (1, -1)
    )
    conditions = [condition for condition in rank_conditions(rows) if condition.mean]
    better, worse = (
        [condition.name for condition in conditions if condition.is_significant and sign * condition.gain > 0]
        for sign in (1, -1)
    )
    return (
        f"Of {len(cells)} intervals{idle_text} {gain_count} lie above zero and {loss_count} below; "
        f"{len(cells) * ALPHA / 2:.1f} on each side would if nothing made a difference. After Holm correction "
        f"over {len(conditions)} conditions, "
        f"{_format_condition_names(better)} a positive mean gain and {_format_condition_names(worse)} a negative one."
    )


def _average_gain_tests(rows: Sequence[Row]) -> TTest | None:
    tests = [test for test in map(reconstruct_gain_test, rows) if test]
    return mean_difference_t_test(tests) if tests else None


def _format_condition_names(names: Sequence[str]) -> str:
    if not names:
        return "none has"
    return f"{len(names)} ({', '.join(names)}) {'has' if len(names) == 1 else 'have'}"
