"""The leaderboard of all conditions on all test policies: tables, a sortable page, and a picture."""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlcredit.base.files import render_csv, write_atomically
from rlcredit.base.plot_style import BETTER_COLOUR, INK_COLOUR, MUTED_COLOUR, WORSE_COLOUR, create_figure, style_axes
from rlcredit.base.text_escaping import escape_markdown
from rlcredit.cards.card import BASELINE_VERDICT
from rlcredit.cards.card_policies import POLICY_MEANINGS
from rlcredit.cards.ranking import (
    BOARD_FINDINGS,
    GAIN_COLUMN,
    Leaderboard,
    RankedCondition,
    Row,
    group_rows_by_policy,
    is_gain_significant,
    parse_row_number,
    rank_conditions,
    reconstruct_gain_test,
    summarise_leaderboard,
)
from rlcredit.pages.charts import IntervalStrip, StripScale
from rlcredit.pages.number_formats import format_p_value, format_unit_interval, format_unit_value, format_with_interval
from rlcredit.pages.page_template import find_verdict_class, load_page_template
from rlcredit.pages.tables import Table, TableCell
from rlcredit.report.report_tables import shorten_commit
from rlcredit.statistics.t_test import TTest


def write_leaderboard(rows: Sequence[Row], folder: Path, own_names: Collection[str] = ()) -> Path:
    """Write a leaderboard: CSV, Markdown, a picture, a sortable page.

    Args:
        rows: Leaderboard rows of all conditions and test policies.
        folder: Folder of all cards.
        own_names: Names of the user's own conditions among the others.

    Returns:
        The page.

    """
    write_atomically(folder / "leaderboard.csv", render_csv(rows))
    (folder / "leaderboard.png").unlink(missing_ok=True)  # of an earlier leaderboard; this one may have none
    sentence = summarise_leaderboard(rows)
    text = f"{render_leaderboard_table(rows)}\n\n{sentence}".strip()
    write_atomically(folder / "leaderboard.md", escape_markdown(text + "\n"))
    if sentence:
        plot_condition_gains(rows, folder / "leaderboard.png")
    page = folder / "leaderboard.html"
    content = {
        "first": rows[0],
        "summary": sentence,
        "ranking": make_ranking_table(rows, own_names),
        "boards": {name: make_board_table(board, own_names) for name, board in group_rows_by_policy(rows).items()},
        "meanings": {row["organism"]: POLICY_MEANINGS.get(row["organism"], "") for row in rows},
    }
    write_atomically(page, load_page_template(Path(__file__).with_name(page.name)).render(content))
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
            (row["condition"], *(format_row_cell(row, name, units[name]) for name in titles)) for row in board.rows
        ]
        parts.append(f"**{organism}**, one batch, against `{rows[0]['baseline']}`")
        parts.append(Table(("condition", *titles.values()), lines).to_markdown())
    return "\n\n".join(parts)


def _make_gain_table(rows: Sequence[Row]) -> Table:
    """Return the table of gains; those that differ from zero after correction are bold."""
    organisms = list(dict.fromkeys(row["organism"] for row in rows))
    lines = []
    for condition in rank_conditions(rows):
        texts = [_format_gain_cell(condition.cells.get(organism)) for organism in organisms]
        mean = _format_gain_test(condition.mean) if condition.mean else "0"
        lines.append((condition.name, *texts, f"**{mean}**" if condition.is_significant else mean))
    return Table(("condition", *organisms, "mean"), lines)


def format_row_cell(row: Row, name: str, unit: str = "number") -> str:
    """Format a number of a leaderboard row, with its interval if it has one."""
    number, low, high = (parse_row_number(row, f"{name}{end}", math.nan) for end in ("", "_low", "_high"))
    interval = format_unit_interval(low, high, unit)
    return f"{format_unit_value(number, unit)}{f' ({interval})' if interval else ''}"


def make_board_table(board: Leaderboard, own_names: Collection[str]) -> Table:
    """Return the sortable table of all conditions on one test policy; what is the same for all is said below it.

    Args:
        board: Rows of the test policy.
        own_names: Names of the conditions that are highlighted.

    """
    rows = [
        (
            TableCell(row["condition"], hint=f"{row['command']}, commit {shorten_commit(row['commit'])}"),
            TableCell(
                re.split(":| within", row["verdict"])[0],
                hint=row["verdict"],
                css_class=find_verdict_class(row["verdict"]),
            ),
            *(make_number_cell(row, name, board.units[name]) for name in board.titles),
        )
        for row in board.sorted_rows
    ]
    terms = {title: meaning for title, _, meaning in BOARD_FINDINGS.values()}
    table = Table(("condition", "verdict", *board.titles.values()), rows, ("verdict",), own_names, terms)
    constant_columns = {name: text for name, text in table.find_constant_columns().items() if name in terms}
    note = (
        f"The same for all: {', '.join(f'{name} {text}' for name, text in constant_columns.items())}."
        if constant_columns
        else ""
    )
    return replace(table.without_columns(constant_columns), note=note)


def make_number_cell(row: Row, name: str, unit: str) -> TableCell:
    """Return a cell with a number of a leaderboard row and its interval."""
    number, low, high = (parse_row_number(row, f"{name}{end}", math.nan) for end in ("", "_low", "_high"))
    return TableCell(format_unit_value(number, unit), row[name], detail=format_unit_interval(low, high, unit))


def make_ranking_table(rows: Sequence[Row], own_names: Collection[str]) -> Table:
    """Return the sortable table of all conditions: mean gain, its p, and the gain on every test policy.

    Args:
        rows: Leaderboard rows of all conditions and test policies.
        own_names: Names of the conditions that are highlighted.

    """
    organisms, empty = list(dict.fromkeys(row["organism"] for row in rows)), TableCell("", sort_key="")
    ranking = rank_conditions(rows)
    means = [condition.mean for condition in ranking if condition.mean]
    scale = StripScale.around(number for mean in means for number in (mean.difference, *mean.interval[:2]))
    lines = []
    for condition in ranking:
        gains = [
            make_number_cell(condition.cells[name], GAIN_COLUMN, "points") if name in condition.cells else empty
            for name in organisms
        ]
        lines.append((condition.name, *(_make_mean_cells(condition, scale) or (empty,) * 3), *gains))
    terms = {
        "mean": "mean over the test policies of the paired gain over the whole of training, in points of pass@1",
        "95 % interval": "of the mean, in points; the line is zero",
        "p": "of the mean, corrected by Holm for all conditions; colour marks what stays below 5 %",
    }
    return Table(("condition", "mean", "95 % interval", "p", *organisms), lines, highlighted=own_names, terms=terms)


def _make_mean_cells(condition: RankedCondition, scale: StripScale) -> tuple[TableCell, TableCell, TableCell] | None:
    """Return the cells of a mean gain, of its drawing, and of its p-value, None without a mean."""
    if condition.mean is None:
        return None
    low, high, _ = condition.mean.interval
    colour = ("better" if condition.gain > 0 else "worse") if condition.is_significant else ""
    mean = format_with_interval(condition.gain, low, high, "+.2f")
    return (
        TableCell(f"{condition.gain:+.2f}", condition.gain, css_class=colour, detail=f"{low:+.2f} to {high:+.2f}"),
        TableCell(mean, condition.gain, drawn=IntervalStrip(scale, condition.gain, low, high)),
        TableCell(format_p_value(condition.p), condition.p),
    )


def plot_condition_gains(rows: Sequence[Row], path: Path) -> None:
    """Plot each condition's gain during training with its interval: a panel per test policy, and one of the mean."""
    organisms, order = list(dict.fromkeys(row["organism"] for row in rows)), rank_conditions(rows)
    titles = [*organisms, *(["mean"] if len(organisms) > 1 else [])]
    figure = create_figure(2.2 + 1.9 * len(titles), 1.2 + 0.24 * len(order))
    panels = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for axes, title in zip(panels, titles, strict=True):
        for place, condition in enumerate(order):
            _plot_gain_interval(axes, place, condition, title)
        axes.axvline(0, color=MUTED_COLOUR, linewidth=0.8)
        style_axes(axes, title)
        axes.locator_params(axis="x", nbins=4)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(visible=False, axis="y")
    label = "points of pass@1 by which a condition is ahead of the baseline, mean over training"
    figure.supxlabel(f"{label}; every panel has its own scale", fontsize=8, color=INK_COLOUR)
    panels[0].set_yticks(range(len(order)), [condition.name for condition in order], fontsize=8)
    panels[0].invert_yaxis()
    figure.savefig(path, dpi=150)


def _plot_gain_interval(axes: Any, place: int, condition: RankedCondition, title: str) -> None:
    """Plot a gain with its interval, in the colour of its sign if significant; the mean counts after correction."""
    cell = condition.cells.get(title)
    test = reconstruct_gain_test(cell) if cell else condition.mean if title == "mean" else None
    if test is None:
        if cell and cell["verdict"] == BASELINE_VERDICT:
            axes.plot([0], [place], "o", color=MUTED_COLOUR, markersize=4)
        return
    is_significant = is_gain_significant(test) if cell else condition.is_significant
    colour = (BETTER_COLOUR if test.difference > 0 else WORSE_COLOUR) if is_significant else INK_COLOUR
    axes.plot([test.interval.low, test.interval.high], [place, place], color=colour, linewidth=1.4)
    axes.plot([test.difference], [place], "o", color=colour, markersize=4)


def _format_gain_cell(row: Row | None) -> str:
    if row is None:
        return ""
    test = reconstruct_gain_test(row)
    return _format_gain_test(test) if test else "0" if row["verdict"] == BASELINE_VERDICT else ""


def _format_gain_test(test: TTest) -> str:
    return format_with_interval(test.difference, test.interval.low, test.interval.high, "+.1f")
