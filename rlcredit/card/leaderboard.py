"""All conditions beside each other on all organisms: a table, a page that can be sorted, a picture, what foretells."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rlcredit.card.board import GAIN, Board, Row, number, row
from rlcredit.card.card import ITSELF, Card
from rlcredit.card.foretelling import by_probe, foretold, markdown_of
from rlcredit.card.rendering import rendered, with_ends
from rlcredit.figures import ACCENT, INK, MUTED, finish, new_figure
from rlcredit.files import as_csv, write_atomically


def written(cards: Sequence[Card], folder: Path) -> Path:
    """Write the board of some cards, and what foretells learning: CSV, Markdown, a picture, a page that can be sorted.

    Args:
        cards: of all conditions and organisms.
        folder: of all cards.

    Returns:
        The page.

    """
    rows = [row(card) for card in cards]
    write_atomically(folder / "leaderboard.csv", as_csv(rows))
    known = list(foretold([each for each in rows if each["verdict"] != ITSELF]))
    if known:
        write_atomically(folder / "foretold.csv", as_csv([each.row() for each in known]))
    organisms = dict.fromkeys(each["organism"] for each in rows)
    boards = {name: Board([each for each in rows if each["organism"] == name]) for name in organisms}
    lines = [*markdown(rows), *(["", *markdown_of(known)] if known else [])]
    write_atomically(folder / "leaderboard.md", "\n".join(lines) + "\n")
    if any(each[GAIN] for each in rows):
        draw(rows, folder / "leaderboard.png")
    page = folder / "leaderboard.html"
    shown = {"boards": boards, "first": rows[0], "foretold": by_probe(known)}
    write_atomically(page, rendered(page.name, shown))
    return page


def markdown(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table with one line per condition: its paired gain on the way on every organism, best mean first."""
    organisms = list(dict.fromkeys(each["organism"] for each in rows))
    yield f"| condition | {' | '.join(organisms)} | mean |"
    yield "|---" * (len(organisms) + 2) + "|"
    for name, cells in ranked(rows):
        shown = [_cell(cells[organism]) if organism in cells else "" for organism in organisms]
        gains = [number(cell, GAIN) for cell in cells.values()]
        yield f"| {name} | {' | '.join(shown)} | {np.mean(gains):+.1f} |"


def ranked(rows: Sequence[Row]) -> list[tuple[str, dict[str, Row]]]:
    """Return the rows of every condition by organism, what gains most on average first."""
    by_name: dict[str, dict[str, Row]] = {}
    for each in rows:
        by_name.setdefault(each["condition"], {})[each["organism"]] = each
    gain = {name: np.mean([number(each, GAIN) for each in cells.values()]) for name, cells in by_name.items()}
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
            mean, low, high = _gain(cell)
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
    return with_ends(*_gain(each), "+.1f") if each[GAIN] else ""


def _gain(each: Row) -> tuple[float, float, float]:
    """Return the gain and the ends of its interval, as far as there are any."""
    mean, low, high = (number(each, f"{GAIN}{end}", np.nan) for end in ("", "_low", "_high"))
    return mean, low, high
