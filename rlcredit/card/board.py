"""All conditions beside each other: a table that is shipped, grows with every card, and is drawn."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlcredit.card.card import ITSELF, Card
from rlcredit.card.foretelling import Foretold, foretold
from rlcredit.card.rendering import rendered
from rlcredit.card.subject import subject
from rlcredit.figures import ACCENT, INK, MUTED, finish, new_figure
from rlcredit.files import write_atomically

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
        return sorted(self.rows, key=lambda row: -_number(row, "area_gain", 0.0))

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


def shipped() -> list[str]:
    """Return the shipped operators that lead to credit, by name."""
    from callbacks import every_operator  # noqa: PLC0415  (imports every operator)

    found = []
    for cls in every_operator():
        try:
            subject(cls.__name__)
        except ValueError:
            continue
        found.append(cls.__name__)
    return found


def written(cards: Sequence[Card], folder: Path) -> Path:
    """Write the board of some cards, and what foretells learning: CSV, Markdown, a picture, a page that can be sorted.

    Args:
        cards: of all conditions and organisms.
        folder: of all cards.

    Returns:
        The page.

    """
    rows = [row(card) for card in cards]
    write_atomically(folder / "leaderboard.csv", _csv(rows))
    known = list(foretold([each for each in rows if each["verdict"] != ITSELF]))
    if known:
        write_atomically(folder / "foretold.csv", _csv([_foretold(each) for each in known]))
    organisms = dict.fromkeys(each["organism"] for each in rows)
    boards = {name: Board([each for each in rows if each["organism"] == name]) for name in organisms}
    lines = [*markdown(rows), *(["", *foretelling(known)] if known else [])]
    write_atomically(folder / "leaderboard.md", "\n".join(lines) + "\n")
    page = folder / "leaderboard.html"
    write_atomically(
        page, rendered("leaderboard.html", {"boards": boards, "first": rows[0], "foretold": by_probe(known)})
    )
    if any(each["area_gain"] for each in rows):
        draw(rows, folder / "leaderboard.png")
    return page


def markdown(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table with one line per condition: its paired gain on the way on every organism, best mean first."""
    organisms = list(dict.fromkeys(each["organism"] for each in rows))
    yield f"| condition | {' | '.join(organisms)} | mean |"
    yield "|---" * (len(organisms) + 2) + "|"
    for name, cells in ranked(rows):
        shown = [_cell(cells[organism]) if organism in cells else "" for organism in organisms]
        gains = [_number(cell, "area_gain", 0.0) for cell in cells.values()]
        yield f"| {name} | {' | '.join(shown)} | {np.mean(gains):+.1f} |"


def foretelling(known: Sequence[Foretold]) -> Iterator[str]:
    """Yield a table with one line per measurement: its rank correlation with the gain, and with its size."""
    yield "| measurement before training | with the gain | with its size | conditions x organisms |"
    yield "|---|---|---|---|"
    for title, (gain, size) in by_probe(known).items():
        yield f"| {title} | {_ranked(gain)} | {_ranked(size)} | {gain.conditions} x {gain.organisms} |"


def by_probe(known: Sequence[Foretold]) -> dict[str, list[Foretold]]:
    """Return what is foretold, the gain and its size, by the title of the measurement."""
    found: dict[str, list[Foretold]] = {}
    for each in known:
        found.setdefault(SHOWN[each.probe][0], []).append(each)
    return found


def ranked(rows: Sequence[Row]) -> list[tuple[str, dict[str, Row]]]:
    """Return the rows of every condition by organism, what gains most on average first."""
    by_name: dict[str, dict[str, Row]] = {}
    for each in rows:
        by_name.setdefault(each["condition"], {})[each["organism"]] = each
    gain = {
        name: np.mean([_number(each, "area_gain", 0.0) for each in cells.values()]) for name, cells in by_name.items()
    }
    return sorted(by_name.items(), key=lambda item: -gain[item[0]])


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the gain on the way of every condition with its interval, one panel per organism."""
    organisms, order = list(dict.fromkeys(each["organism"] for each in rows)), ranked(rows)
    figure = new_figure(2.2 + 2.6 * len(organisms), 1.2 + 0.24 * len(order))
    panels = figure.subplots(1, len(organisms), sharey=True, squeeze=False)[0]
    for axes, organism in zip(panels, organisms, strict=True):
        for place, (_, cells) in enumerate(order):
            if organism not in cells:
                continue
            cell = cells[organism]
            mean, low, high = (_number(cell, f"area_gain{end}", np.nan) for end in ("", "_low", "_high"))
            sure = low > 0 or high < 0
            colour = MUTED if cell["verdict"] == ITSELF else ACCENT if sure else INK
            axes.plot([low, high], [place, place], color=colour, linewidth=1.4)
            axes.plot([mean], [place], "o", color=colour, markersize=4)
        axes.axvline(0, color=MUTED, linewidth=0.8)
        finish(axes, organism)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("points of pass@1 on the way", fontsize=8, color=MUTED)
    panels[0].set_yticks(range(len(order)), [name for name, _ in order], fontsize=8)
    panels[0].invert_yaxis()
    figure.savefig(path, dpi=150)


def _cell(each: Row) -> str:
    if each["verdict"] == ITSELF:
        return "0"
    if not each["area_gain"]:
        return ""
    mean, low, high = (_number(each, f"area_gain{end}", np.nan) for end in ("", "_low", "_high"))
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"


def _csv(rows: Sequence[Row]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def _foretold(each: Foretold) -> Row:
    numbers = {"correlation": each.correlation, "low": each.interval.low, "high": each.interval.high}
    counts = {"conditions": str(each.conditions), "organisms": str(each.organisms)}
    return {"probe": each.probe, "outcome": each.outcome, **{k: f"{v:.6g}" for k, v in numbers.items()}, **counts}


def _ranked(each: Foretold) -> str:
    return f"{each.correlation:+.2f} ({each.interval.low:+.2f} to {each.interval.high:+.2f})"


def _number(each: Row, name: str, otherwise: float) -> float:
    return float(each[name]) if each[name] else otherwise
