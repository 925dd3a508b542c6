"""Cards for people: one self-contained HTML page, Markdown, and an MLflow run."""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rlcredit.base.files import write_atomically
from rlcredit.cards.card import SECTIONS, Card
from rlcredit.cards.card_policies import MEANINGS
from rlcredit.cards.card_text import explain_left_out
from rlcredit.cards.cautions import list_verdict_cautions
from rlcredit.cards.finding import Finding
from rlcredit.cards.ranking import SHOWN, Leaderboard, Row, add_shipped_rows, group_rows_by_policy, parse_row_number
from rlcredit.cards.stack_properties import classify_property
from rlcredit.cards.training_outcome import EFFECT
from rlcredit.credit.heatmap import draw_heatmap
from rlcredit.outputs.code_versions import read_code_versions
from rlcredit.pages.charts import IntervalStrip, StripScale, draw_curve_chart
from rlcredit.pages.formulas import render_formula
from rlcredit.pages.number_formats import format_unit_interval, format_unit_value
from rlcredit.pages.page_template import find_verdict_class, load_page_template
from rlcredit.pages.tables import Table, TableCell
from rlcredit.record import RunRecord
from rlcredit.record.destination import MLflowDestination, make_destination
from rlcredit.report.report_tables import shorten_commit
from rlcredit.run_folder.layout import RunFolder

HEATMAP_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def render_card_template(template: str, content: dict[str, Any]) -> str:
    """Return a template filled with its content."""
    return load_page_template(Path(__file__).with_name(template)).render(
        content,
        shorten_commit=shorten_commit,
        classify_property=classify_property,
        render_formula=lambda latex: Markup(render_formula(latex)),
    )


def redraw_heatmap(page: str) -> str:
    """Draw the heat-map of a card anew from the data in its page; empty if there are none.

    A card may come from elsewhere. Its data are shown by rlcredit's own script, and no script of its page ever runs.
    """
    data = HEATMAP_DATA.search(page)
    try:
        content = json.loads(data[1]) if data else None
    except ValueError:
        return ""
    if not (isinstance(content, dict) and {"title", "stack"} <= content.keys()):
        return ""
    return draw_heatmap(content, embedded=True)


def _make_section_tables(card: Card) -> Iterator[tuple[str, Table]]:
    """Yield the title of every section of a card, and the table of its findings."""
    for name, title in SECTIONS.items():
        if findings := card.sections.get(name):
            yield title, Table(("", "here", "95 %", card.baseline, ""), [*map(_list_finding_cells, findings)])


def _list_finding_cells(finding: Finding) -> tuple[str, ...]:
    return (
        finding.title,
        format_unit_value(finding.estimate, finding.unit),
        format_unit_interval(finding.low, finding.high, finding.unit),
        format_unit_value(finding.baseline, finding.unit),
        finding.sentence,
    )


def format_row_cell(row: Row, name: str, unit: str = "number") -> str:
    """Format a number of a leaderboard row, with its interval if it has one."""
    number, low, high = (parse_row_number(row, f"{name}{end}", math.nan) for end in ("", "_low", "_high"))
    interval = format_unit_interval(low, high, unit)
    return f"{format_unit_value(number, unit)}{f' ({interval})' if interval else ''}"


def make_board_table(board: Leaderboard, own: Collection[str]) -> Table:
    """Return the sortable table of all conditions on one test policy; what is the same for all is said below it.

    Args:
        board: Rows of the test policy.
        own: Names of the conditions that are highlighted.

    """
    rows = [
        (
            TableCell(row["condition"], hint=f"{row['command']}, commit {shorten_commit(row['commit'])}"),
            TableCell(row["verdict"], css_class=find_verdict_class(row["verdict"])),
            *(make_number_cell(row, name, board.units[name]) for name in board.titles),
        )
        for row in board.sorted_rows
    ]
    terms = {title: meaning for title, _, meaning in SHOWN.values()}
    table = Table(("condition", "verdict", *board.titles.values()), rows, ("verdict",), own, terms)
    same = {name: text for name, text in table.find_constant_columns().items() if name in terms}
    note = f"The same for all: {', '.join(f'{name} {text}' for name, text in same.items())}." if same else ""
    return replace(table.without_columns(same), note=note)


def make_number_cell(row: Row, name: str, unit: str) -> TableCell:
    """Return a cell with a number of a leaderboard row and its interval."""
    number, low, high = (parse_row_number(row, f"{name}{end}", math.nan) for end in ("", "_low", "_high"))
    return TableCell(format_unit_value(number, unit), row[name], detail=format_unit_interval(low, high, unit))


GAINS = ("gain", "area_gain", "token_gain")
"""Findings that are drawn as strips."""


def make_gain_table(card: Card) -> Table:
    """Return the table of a card's gains with their intervals, drawn on one scale."""
    gains = [found for name in GAINS if (found := card.finding(name))]
    margin = 100 * EFFECT
    ends = (number for each in gains for number in (each.estimate, each.low, each.high))
    scale = StripScale.around([-margin, margin, *ends])
    rows = [
        (
            each.title.removesuffix(", paired"),
            TableCell(each.title, drawn=IntervalStrip(scale, each.estimate, each.low, each.high, margin)),
            TableCell(
                format_unit_value(each.estimate, each.unit),
                detail=format_unit_interval(each.low, each.high, each.unit),
            ),
        )
        for each in gains
    ]
    note = (
        f"Points of held-out pass@1 above or below {card.baseline}, in runs paired by seed, with 95 % intervals. The "
        f"line is zero; the grey part, up to {margin:g} point, was declared not to matter."
    )
    return Table(("", f"{scale.low:+.1f} to {scale.high:+.1f}", "points"), rows, note=note)


def write_card_page(
    cards: Sequence[Card],
    folder: Path,
    mlflow: str = "none",
    experiment: str = "cards",
    beside: Sequence[Card] = (),
) -> Path:
    """Write the page of a condition, and record it in MLflow unless it is there already.

    Args:
        cards: Cards of one condition, one per test policy.
        folder: Folder of all cards.
        mlflow: Address of the tracker; ``none`` for no run, ``env`` for that of the environment.
        experiment: Name of the MLflow experiment.
        beside: Further cards that stand in its table of all.

    Returns:
        The HTML page; Markdown and JSON lie beside it.

    """
    first = cards[0]
    place = folder / first.page_stem
    place.mkdir(parents=True, exist_ok=True)
    boards = group_rows_by_policy(add_shipped_rows([*beside, *cards]))
    shown = {
        "cards": cards,
        "first": first,
        "sections": [list(_make_section_tables(card)) for card in cards],
        "boards": [make_board_table(boards[card.organism], [card.name]) for card in cards],
        "heatmaps": [redraw_heatmap(card.page) for card in cards],
        "cautions": [list(list_verdict_cautions(card, boards[card.organism])) for card in cards],
        "gains": [make_gain_table(card) for card in cards],
        "charts": [draw_curve_chart(card.curves) if card.curves else None for card in cards],
        "left_out": explain_left_out(first),
        "meanings": [MEANINGS.get(card.organism, "") if card.has_shipped_names else "" for card in cards],
    }
    paths, changed = [place / "card.html", place / "card.md"], False
    for path in paths:
        text = render_card_template(path.name, shown)
        changed |= not path.is_file() or path.read_text(encoding="utf-8") != text
        write_atomically(path, text)
    settings = {"tracking_uri": None if mlflow == "env" else mlflow, "experiment_name": experiment}
    if mlflow != "none" and (changed or not _has_mlflow_record(place, settings)):
        _record_cards(cards, place, paths, settings)
    return paths[0]


def _has_mlflow_record(place: Path, settings: Mapping[str, Any]) -> bool:
    """Whether a record of the page has been, or is being, delivered to this tracker and experiment."""
    to = MLflowDestination.load(RunFolder(place).tracking)
    wanted = make_destination(settings, "", {})
    return to is not None and (to.tracking_uri, to.experiment_name) == (wanted.tracking_uri, wanted.experiment_name)


def _record_cards(cards: Sequence[Card], place: Path, paths: Sequence[Path], settings: Mapping[str, Any]) -> None:
    """Record the cards and have the record delivered; if MLflow is unreachable, a message says how to deliver later."""
    first = cards[0]
    tags = {
        "kind": "card",
        "condition": first.name,
        "budget": first.budget,
        "verdict": first.verdict,
        **read_code_versions(),
    }
    record = RunRecord(RunFolder(place), to=make_destination(settings, first.page_stem, tags))
    try:
        record.log_hyperparams({"stack": first.stack, "baseline": first.baseline, "command": first.command(*cards[1:])})
        metrics: dict[str, float] = {}
        for card in cards:
            for section, findings in card.sections.items():
                for one in findings:
                    numbers = {"": one.estimate, "_low": one.low, "_high": one.high, "_baseline": one.baseline}
                    name = f"{card.organism}/{section}/{one.name}"
                    metrics |= {f"{name}{end}": number for end, number in numbers.items() if math.isfinite(number)}
        record.log_metrics(metrics, step=0)
        for path in paths:
            record.log_file(path)
    finally:
        record.close("FINISHED")
