"""All conditions beside each other on all organisms: a table, a page that can be sorted, a picture, what foretells."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rlcredit.card.board import Row, by_organism
from rlcredit.card.card import ITSELF
from rlcredit.card.foretelling import by_probe, foretold, markdown_of
from rlcredit.card.rendering import cell, rendered, with_ends
from rlcredit.card.standing import Standing, apart, gain_of, said, standings
from rlcredit.figures import ACCENT, INK, MUTED, finish, new_figure
from rlcredit.files import as_csv, write_atomically
from rlcredit.inspection.visible import plain_markdown
from rlcredit.statistics.t_test import TTest


def written(rows: Sequence[Row], folder: Path, own: Collection[str] = ()) -> Path:
    """Write a board, and what foretells learning: CSV, Markdown, a picture, a page that can be sorted.

    Args:
        rows: of all conditions and organisms.
        folder: of all cards.
        own: conditions that are shown among the others.

    Returns:
        The page.

    """
    write_atomically(folder / "leaderboard.csv", as_csv(rows))
    known = list(foretold(rows))
    for name in ("foretold.csv", "leaderboard.png"):  # of an earlier board; this one may have none
        (folder / name).unlink(missing_ok=True)
    if known:
        write_atomically(folder / "foretold.csv", as_csv([each.row() for each in known]))
    boards, sentence = by_organism(rows), said(rows)
    parts = [list(markdown(rows)), [sentence], list(markdown_of(known)) if known else []]
    texts = ["\n".join(lines).rstrip() for lines in parts]
    write_atomically(folder / "leaderboard.md", plain_markdown("\n\n".join(filter(None, texts)) + "\n"))
    if sentence:
        draw(rows, folder / "leaderboard.png")
    page = folder / "leaderboard.html"
    shown = {"boards": boards, "first": rows[0], "foretold": by_probe(known)}
    whole = {"standings": standings(rows), "said": sentence, "own": own}
    write_atomically(page, rendered(page.name, shown | whole))
    return page


def markdown(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table with one line per condition: its paired gain on the way on every organism, best mean first.

    Where nothing was trained, it is a table per organism of what one batch says.
    """
    yield from _gains(rows) if any(map(gain_of, rows)) else _measurements(rows)


def _gains(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of gains, in bold what differs from zero after all comparisons."""
    organisms = list(dict.fromkeys(each["organism"] for each in rows))
    lines = []
    for standing in standings(rows):
        shown = [_cell(standing.cells.get(organism)) for organism in organisms]
        mean = _written(standing.mean) if standing.mean else "0"
        lines.append((standing.name, *shown, f"**{mean}**" if standing.decided else mean))
    yield from _table(("condition", *organisms, "mean"), lines)


def _measurements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what one batch says, a table per organism under its name."""
    for organism, board in by_organism(rows).items():
        titles, units = board.titles, board.units
        yield from (f"**{organism}**, one batch, against `{rows[0]['baseline']}`", "")
        lines = [(each["condition"], *(cell(each, name, units[name]) for name in titles)) for each in board.rows]
        yield from _table(("condition", *titles.values()), lines)
        yield ""


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    yield from (f"| {' | '.join(cells)} |" for cells in lines)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the gain on the way of every condition with its interval: a panel per organism, and one of their mean."""
    organisms, order = list(dict.fromkeys(each["organism"] for each in rows)), standings(rows)
    titles = [*organisms, *(["mean"] if len(organisms) > 1 else [])]
    figure = new_figure(2.2 + 1.9 * len(titles), 1.2 + 0.24 * len(order))
    panels = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for axes, title in zip(panels, titles, strict=True):
        for place, standing in enumerate(order):
            _point(axes, place, standing, title)
        axes.axvline(0, color=MUTED, linewidth=0.8)
        finish(axes, title)
        axes.grid(visible=False, axis="y")
    figure.supxlabel("paired gain on the way, points of pass@1", fontsize=8, color=MUTED)
    panels[0].set_yticks(range(len(order)), [standing.name for standing in order], fontsize=8)
    panels[0].invert_yaxis()
    figure.savefig(path, dpi=150)


def _point(axes: Any, place: int, standing: Standing, title: str) -> None:
    """Draw a gain with its interval, in colour if it is none of chance: after all comparisons where it is the mean."""
    cell = standing.cells.get(title)
    test = gain_of(cell) if cell else standing.mean if title == "mean" else None
    if test is None:
        if cell and cell["verdict"] == ITSELF:
            axes.plot([0], [place], "o", color=MUTED, markersize=4)
        return
    colour = ACCENT if (apart(test) if cell else standing.decided) else INK
    axes.plot([test.interval.low, test.interval.high], [place, place], color=colour, linewidth=1.4)
    axes.plot([test.difference], [place], "o", color=colour, markersize=4)


def _cell(each: Row | None) -> str:
    if each is None:
        return ""
    test = gain_of(each)
    return _written(test) if test else "0" if each["verdict"] == ITSELF else ""


def _written(test: TTest) -> str:
    return with_ends(test.difference, test.interval.low, test.interval.high, "+.1f")
