"""The leaderboard of all conditions on all test policies: tables, a sortable page, a picture, and predictors."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rlcredit.base.files import render_csv, write_atomically
from rlcredit.base.plot_style import ACCENT, INK, MUTED, create_figure, style_axes
from rlcredit.base.text_escaping import escape_markdown
from rlcredit.cards.card import ITSELF
from rlcredit.cards.card_page import format_row_cell, format_with_interval, render_card_template
from rlcredit.cards.predictors import correlate_predictors, group_by_predictor, render_predictor_table
from rlcredit.cards.ranking import (
    RankedCondition,
    Row,
    group_rows_by_policy,
    is_gain_significant,
    rank_conditions,
    reconstruct_gain_test,
    summarise_leaderboard,
)
from rlcredit.statistics.t_test import TTest


def write_leaderboard(rows: Sequence[Row], folder: Path, own: Collection[str] = ()) -> Path:
    """Write a leaderboard and the predictors of training gains: CSV, Markdown, a picture, a sortable page.

    Args:
        rows: Leaderboard rows of all conditions and test policies.
        folder: Folder of all cards.
        own: Names of the user's own conditions among the others.

    Returns:
        The page.

    """
    write_atomically(folder / "leaderboard.csv", render_csv(rows))
    known = list(correlate_predictors(rows))
    for name in ("foretold.csv", "leaderboard.png"):  # of an earlier leaderboard; this one may have none
        (folder / name).unlink(missing_ok=True)
    if known:
        write_atomically(folder / "foretold.csv", render_csv([each.to_row() for each in known]))
    boards, sentence = group_rows_by_policy(rows), summarise_leaderboard(rows)
    parts = [list(render_leaderboard_table(rows)), [sentence], list(render_predictor_table(known)) if known else []]
    texts = ["\n".join(lines).rstrip() for lines in parts]
    write_atomically(folder / "leaderboard.md", escape_markdown("\n\n".join(filter(None, texts)) + "\n"))
    if sentence:
        plot_condition_gains(rows, folder / "leaderboard.png")
    page = folder / "leaderboard.html"
    shown = {"boards": boards, "first": rows[0], "foretold": group_by_predictor(known)}
    whole = {"ranked": rank_conditions(rows), "said": sentence, "own": own}
    write_atomically(page, render_card_template(page.name, shown | whole))
    return page


def render_leaderboard_table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table with one line per condition: its paired gain during training on every test policy, best mean first.

    Where nothing was trained, there is one table of measurements on one batch per test policy.
    """
    yield from _render_gain_table(rows) if any(map(reconstruct_gain_test, rows)) else _render_measurement_tables(rows)


def _render_gain_table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of gains; those that differ from zero after correction are bold."""
    organisms = list(dict.fromkeys(each["organism"] for each in rows))
    lines = []
    for ranked in rank_conditions(rows):
        shown = [_format_gain_cell(ranked.cells.get(organism)) for organism in organisms]
        mean = _format_gain_test(ranked.mean) if ranked.mean else "0"
        lines.append((ranked.name, *shown, f"**{mean}**" if ranked.is_significant else mean))
    yield from _render_markdown_table(("condition", *organisms, "mean"), lines)


def _render_measurement_tables(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the measurements on one batch, one table per test policy."""
    for organism, board in group_rows_by_policy(rows).items():
        titles, units = board.titles, board.units
        yield from (f"**{organism}**, one batch, against `{rows[0]['baseline']}`", "")
        lines = [
            (each["condition"], *(format_row_cell(each, name, units[name]) for name in titles)) for each in board.rows
        ]
        yield from _render_markdown_table(("condition", *titles.values()), lines)
        yield ""


def _render_markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    yield from (f"| {' | '.join(cells)} |" for cells in lines)


def plot_condition_gains(rows: Sequence[Row], path: Path) -> None:
    """Plot each condition's gain during training with its interval: a panel per test policy, and one of the mean."""
    organisms, order = list(dict.fromkeys(each["organism"] for each in rows)), rank_conditions(rows)
    titles = [*organisms, *(["mean"] if len(organisms) > 1 else [])]
    figure = create_figure(2.2 + 1.9 * len(titles), 1.2 + 0.24 * len(order))
    panels = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for axes, title in zip(panels, titles, strict=True):
        for place, ranked in enumerate(order):
            _plot_gain_interval(axes, place, ranked, title)
        axes.axvline(0, color=MUTED, linewidth=0.8)
        style_axes(axes, title)
        axes.grid(visible=False, axis="y")
    figure.supxlabel("paired gain on the way, points of pass@1", fontsize=8, color=MUTED)
    panels[0].set_yticks(range(len(order)), [ranked.name for ranked in order], fontsize=8)
    panels[0].invert_yaxis()
    figure.savefig(path, dpi=150)


def _plot_gain_interval(axes: Any, place: int, ranked: RankedCondition, title: str) -> None:
    """Plot a gain with its interval, in colour if it is significant; the mean counts after correction."""
    cell = ranked.cells.get(title)
    test = reconstruct_gain_test(cell) if cell else ranked.mean if title == "mean" else None
    if test is None:
        if cell and cell["verdict"] == ITSELF:
            axes.plot([0], [place], "o", color=MUTED, markersize=4)
        return
    colour = ACCENT if (is_gain_significant(test) if cell else ranked.is_significant) else INK
    axes.plot([test.interval.low, test.interval.high], [place, place], color=colour, linewidth=1.4)
    axes.plot([test.difference], [place], "o", color=colour, markersize=4)


def _format_gain_cell(each: Row | None) -> str:
    if each is None:
        return ""
    test = reconstruct_gain_test(each)
    return _format_gain_test(test) if test else "0" if each["verdict"] == ITSELF else ""


def _format_gain_test(test: TTest) -> str:
    return format_with_interval(test.difference, test.interval.low, test.interval.high, "+.1f")
