"""The leaderboard of all conditions on all test policies: tables, a sortable page, a picture, and predictors."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from rlcredit.base.files import render_csv, write_atomically
from rlcredit.base.plot_style import ACCENT_COLOUR, INK_COLOUR, MUTED_COLOUR, create_figure, style_axes
from rlcredit.base.text_escaping import escape_markdown
from rlcredit.cards.card import ITSELF
from rlcredit.cards.card_page import format_row_cell, make_board_table, make_number_cell, render_card_template
from rlcredit.cards.card_policies import MEANINGS
from rlcredit.cards.predictors import correlate_predictors, make_predictor_table
from rlcredit.cards.ranking import (
    GAIN,
    RankedCondition,
    Row,
    group_rows_by_policy,
    is_gain_significant,
    rank_conditions,
    reconstruct_gain_test,
    summarise_leaderboard,
)
from rlcredit.pages.charts import IntervalStrip, StripScale
from rlcredit.pages.number_formats import format_p_value, format_with_interval
from rlcredit.pages.tables import Table, TableCell
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
    correlations = list(correlate_predictors(rows))
    for name in ("foretold.csv", "leaderboard.png"):  # of an earlier leaderboard; this one may have none
        (folder / name).unlink(missing_ok=True)
    if correlations:
        write_atomically(folder / "foretold.csv", render_csv([each.to_row() for each in correlations]))
    sentence, predictors = summarise_leaderboard(rows), make_predictor_table(correlations)
    parts = [render_leaderboard_table(rows), sentence, predictors.to_markdown() if correlations else ""]
    write_atomically(folder / "leaderboard.md", escape_markdown("\n\n".join(filter(None, parts)) + "\n"))
    if sentence:
        plot_condition_gains(rows, folder / "leaderboard.png")
    page = folder / "leaderboard.html"
    content = {
        "first": rows[0],
        "summary": sentence,
        "ranking": make_ranking_table(rows, own),
        "boards": {name: make_board_table(board, own) for name, board in group_rows_by_policy(rows).items()},
        "predictors": predictors,
        "meanings": {row["organism"]: MEANINGS.get(row["organism"], "") for row in rows},
    }
    write_atomically(page, render_card_template(page.name, content))
    return page


def render_leaderboard_table(rows: Sequence[Row]) -> str:
    """Return a table of all conditions: their paired gains during training on every test policy, best mean first.

    Where nothing was trained, there is one table of measurements on one batch per test policy.
    """
    if any(map(reconstruct_gain_test, rows)):
        return _make_gain_table(rows).to_markdown()
    parts = []
    for organism, board in group_rows_by_policy(rows).items():
        titles, units = board.titles, board.units
        lines = [
            (each["condition"], *(format_row_cell(each, name, units[name]) for name in titles)) for each in board.rows
        ]
        parts.append(f"**{organism}**, one batch, against `{rows[0]['baseline']}`")
        parts.append(Table(("condition", *titles.values()), lines).to_markdown())
    return "\n\n".join(parts)


def _make_gain_table(rows: Sequence[Row]) -> Table:
    """Return the table of gains; those that differ from zero after correction are bold."""
    organisms = list(dict.fromkeys(each["organism"] for each in rows))
    lines = []
    for ranked in rank_conditions(rows):
        shown = [_format_gain_cell(ranked.cells.get(organism)) for organism in organisms]
        mean = _format_gain_test(ranked.mean) if ranked.mean else "0"
        lines.append((ranked.name, *shown, f"**{mean}**" if ranked.is_significant else mean))
    return Table(("condition", *organisms, "mean"), lines)


def make_ranking_table(rows: Sequence[Row], own: Collection[str]) -> Table:
    """Return the sortable table of all conditions: mean gain, its p, and the gain on every test policy.

    Args:
        rows: Leaderboard rows of all conditions and test policies.
        own: Names of the conditions that are highlighted.

    """
    organisms, empty = list(dict.fromkeys(each["organism"] for each in rows)), TableCell("", sort_key="")
    ranking = rank_conditions(rows)
    means = [ranked.mean for ranked in ranking if ranked.mean]
    scale = StripScale.around(number for mean in means for number in (mean.difference, *mean.interval[:2]))
    lines = []
    for ranked in ranking:
        gains = [
            make_number_cell(ranked.cells[name], GAIN, "points") if name in ranked.cells else empty
            for name in organisms
        ]
        lines.append((ranked.name, *(_make_mean_cells(ranked, scale) or (empty,) * 3), *gains))
    drawn = f"{scale.low:+.0f} to {scale.high:+.0f}"
    terms = {
        "mean": "mean over the test policies of the paired gain over the whole of training, in points of pass@1",
        drawn: "the mean with its 95 % interval, drawn on this scale; the line is zero",
        "p": "of the mean, corrected by Holm for all conditions; colour marks what stays below 5 %",
    }
    return Table(("condition", "mean", drawn, "p", *organisms), lines, highlighted=own, terms=terms)


def _make_mean_cells(ranked: RankedCondition, scale: StripScale) -> tuple[TableCell, TableCell, TableCell] | None:
    """Return the cells of a mean gain, of its drawing, and of its p-value, None without a mean."""
    if ranked.mean is None:
        return None
    low, high, _ = ranked.mean.interval
    colour = ("better" if ranked.gain > 0 else "worse") if ranked.is_significant else ""
    mean = format_with_interval(ranked.gain, low, high, "+.2f")
    return (
        TableCell(f"{ranked.gain:+.2f}", ranked.gain, css_class=colour, detail=f"{low:+.2f} to {high:+.2f}"),
        TableCell(mean, ranked.gain, drawn=IntervalStrip(scale, ranked.gain, low, high)),
        TableCell(format_p_value(ranked.p), ranked.p),
    )


def plot_condition_gains(rows: Sequence[Row], path: Path) -> None:
    """Plot each condition's gain during training with its interval: a panel per test policy, and one of the mean."""
    organisms, order = list(dict.fromkeys(each["organism"] for each in rows)), rank_conditions(rows)
    titles = [*organisms, *(["mean"] if len(organisms) > 1 else [])]
    figure = create_figure(2.2 + 1.9 * len(titles), 1.2 + 0.24 * len(order))
    panels = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for axes, title in zip(panels, titles, strict=True):
        for place, ranked in enumerate(order):
            _plot_gain_interval(axes, place, ranked, title)
        axes.axvline(0, color=MUTED_COLOUR, linewidth=0.8)
        style_axes(axes, title)
        axes.locator_params(axis="x", nbins=4)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(visible=False, axis="y")
    said = "points of pass@1 by which a condition is ahead of the baseline, mean over training"
    figure.supxlabel(f"{said}; every panel has its own scale", fontsize=8, color=INK_COLOUR)
    panels[0].set_yticks(range(len(order)), [ranked.name for ranked in order], fontsize=8)
    panels[0].invert_yaxis()
    figure.savefig(path, dpi=150)


def _plot_gain_interval(axes: Any, place: int, ranked: RankedCondition, title: str) -> None:
    """Plot a gain with its interval, in colour if it is significant; the mean counts after correction."""
    cell = ranked.cells.get(title)
    test = reconstruct_gain_test(cell) if cell else ranked.mean if title == "mean" else None
    if test is None:
        if cell and cell["verdict"] == ITSELF:
            axes.plot([0], [place], "o", color=MUTED_COLOUR, markersize=4)
        return
    colour = ACCENT_COLOUR if (is_gain_significant(test) if cell else ranked.is_significant) else INK_COLOUR
    axes.plot([test.interval.low, test.interval.high], [place, place], color=colour, linewidth=1.4)
    axes.plot([test.difference], [place], "o", color=colour, markersize=4)


def _format_gain_cell(each: Row | None) -> str:
    if each is None:
        return ""
    test = reconstruct_gain_test(each)
    return _format_gain_test(test) if test else "0" if each["verdict"] == ITSELF else ""


def _format_gain_test(test: TTest) -> str:
    return format_with_interval(test.difference, test.interval.low, test.interval.high, "+.1f")
