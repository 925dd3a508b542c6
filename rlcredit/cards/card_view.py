"""Cards for people: one self-contained HTML page, Markdown, text for a terminal, and a frame in a notebook."""

import json
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rlcredit.base.files import write_atomically
from rlcredit.cards.card import Card
from rlcredit.cards.card_policies import POLICY_MEANINGS
from rlcredit.cards.cautions import list_verdict_cautions
from rlcredit.cards.finding import Finding
from rlcredit.cards.leaderboard import make_board_table
from rlcredit.cards.ranking import add_shipped_rows, group_rows_by_policy
from rlcredit.cards.stack_properties import classify_property
from rlcredit.cards.training_outcome import CARD_MARGIN
from rlcredit.credit.heatmap import draw_heatmap
from rlcredit.outputs.code_versions import read_code_versions
from rlcredit.pages.charts import IntervalStrip, StripScale, draw_curve_chart
from rlcredit.pages.formulas import render_formula
from rlcredit.pages.notebook_views import InlinePage
from rlcredit.pages.number_formats import format_unit_interval, format_unit_value
from rlcredit.pages.page_template import load_page_template
from rlcredit.pages.tables import Table, TableCell
from rlcredit.record.destination import MLflowDestination
from rlcredit.record.publication import make_results_destination, publish_results
from rlcredit.report.report_tables import shorten_commit
from rlcredit.run_folder.layout import RunFolder

SECTION_TITLES = {
    "batch": "What it does to a batch",
    "gradient": "The gradient",
    "truth": "True credit",
    "learning": "Learning",
    "cost": "Cost",
}
"""Titles, in the order of the page."""

SECTION_WORDS = {"gradient": "the gradient", "truth": "true credit", "learning": "learning", "cost": "cost"}
"""Sections that a batch from a file may lack, in words."""

PROPERTY_MARKS = {"holds": "\N{CHECK MARK}", "fails": "\N{BALLOT X}", "differs": "\N{BULLET}"}
"""Marks of properties; of those without yes or no there is none."""

COMPARED_FINDINGS = {
    "moved": "moved",
    "moved_within": "within",
    "without_credit": "without",
    "confidence": "on the likely",
    "angle": "angle",
}
"""Findings that are shown beside each other where several operators are judged, with the heads of their columns."""

GAIN_FINDINGS = ("gain", "area_gain", "token_gain")
"""Findings that are drawn as strips."""

HEATMAP_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class CardView:
    """What people see of the cards of one condition; a notebook shows the page.

    Args:
        cards: Cards of one condition, one per test policy.
        others: Further cards that stand in the table of all.

    Example:
        >>> CardView.read("cards/aligned/quick/GTPO/card.json")  # doctest: +SKIP

    """

    cards: Sequence[Card]
    others: Sequence[Card] = ()

    @classmethod
    def read(cls, path: Path | str) -> "CardView":
        """Return the view of a card that is stored in a file.

        Raises:
            ValueError: it is no card; names the file, the field and the repair.

        """
        return cls([Card.read(path)])

    def render_page(self, template: str) -> str:
        """Return the page as ``card.html`` or ``card.md``."""
        return load_page_template(Path(__file__).with_name(template)).render(
            self._content,
            shorten_commit=shorten_commit,
            classify_property=classify_property,
            render_formula=lambda latex: Markup(render_formula(latex)),
        )

    def _repr_html_(self) -> str:
        """Return the page in a frame, for a notebook."""
        return InlinePage(self.render_page("card.html"))._repr_html_()

    @cached_property
    def _content(self) -> dict[str, Any]:
        """What the templates show."""
        cards = self.cards
        boards = group_rows_by_policy(add_shipped_rows([*self.others, *cards]))
        return {
            "cards": cards,
            "first": cards[0],
            "sections": [list(_make_section_tables(card)) for card in cards],
            "boards": [make_board_table(boards[card.organism], [card.name]) for card in cards],
            "heatmaps": [redraw_heatmap(card.page) for card in cards],
            "cautions": [list(list_verdict_cautions(card, boards[card.organism])) for card in cards],
            "gains": [make_gain_table(card) for card in cards],
            "charts": [draw_curve_chart(card.curves) if card.curves else None for card in cards],
            "left_out": explain_missing_sections(cards[0]),
            "meanings": [POLICY_MEANINGS.get(card.organism, "") if card.has_shipped_names else "" for card in cards],
        }

    def render_text(self, columns: int) -> Iterator[str]:
        """Yield the lines of the first card, for a terminal.

        Args:
            columns: Width of the terminal.

        """
        card = self.cards[0]
        yield f"{card.name} on {card.organism}, beside {card.baseline}: {card.verdict}"
        yield from textwrap.wrap(card.sentence, columns)
        for warning in card.warnings:
            yield from ("", *textwrap.wrap(f"warning: {warning}", columns))
        for title, table in _make_section_tables(card):
            rows = [(f"  {row[0]}", *row[1:4]) for row in table.rows]
            yield from ("", title, *Table(table.columns[:4], rows).to_text().splitlines())
        yield from ("", "What was checked")
        width = max(len(stack_property.name) for stack_property in card.properties)
        for stack_property in card.properties:
            head = (
                f"  {PROPERTY_MARKS.get(classify_property(stack_property), ' ')} {stack_property.name.ljust(width)}  "
            )
            space = max(columns, len(head) + 20)
            yield from textwrap.wrap(
                stack_property.sentence, space, initial_indent=head, subsequent_indent=" " * len(head)
            )
        yield from ("", *textwrap.wrap(explain_missing_sections(card), columns))


def explain_missing_sections(card: Card) -> str:
    """Return in one sentence what a card of a batch lacks and why; empty for other cards."""
    if not card.is_of_rollout:
        return ""
    *names, final_name = (words for name, words in SECTION_WORDS.items() if not card.sections.get(name))
    gradient = "" if card.sections.get("gradient") else " --model names the policy and adds the gradient."
    return (
        f"A file holds a batch and no policy, verifier or run, so {', '.join(names)} and {final_name} are left out; "
        f"`rlcredit card {card.name}` measures them on a test policy.{gradient}"
    )


def render_comparison_text(cards: Sequence[Card]) -> str:
    """Return a table of several cards of one batch, for a terminal."""
    heads = {name: head for name, head in COMPARED_FINDINGS.items() if any(card.finding(name) for card in cards)}
    rows = []
    for card in cards:
        findings = map(card.finding, heads)
        cells = (format_unit_value(finding.estimate, finding.unit) if finding else "" for finding in findings)
        rows.append((card.name, *cells))
    return Table((cards[0].organism, *heads.values()), rows).to_text()


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
    for name, title in SECTION_TITLES.items():
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


def make_gain_table(card: Card) -> Table:
    """Return the table of a card's gains with their intervals, drawn on one scale."""
    gains = [gain for gain in map(card.finding, GAIN_FINDINGS) if gain]
    margin = 100 * CARD_MARGIN
    ends = (number for gain in gains for number in (gain.estimate, gain.low, gain.high))
    scale = StripScale.around([-margin, margin, *ends])
    rows = [
        (
            gain.title.removesuffix(", paired"),
            TableCell(gain.title, drawn=IntervalStrip(scale, gain.estimate, gain.low, gain.high, margin)),
            TableCell(
                format_unit_value(gain.estimate, gain.unit),
                detail=format_unit_interval(gain.low, gain.high, gain.unit),
            ),
        )
        for gain in gains
    ]
    note = (
        f"Points of held-out pass@1 above or below {card.baseline}, in runs paired by seed, with 95 % intervals. The "
        f"line is zero; the grey part, up to {margin:g} point, was declared not to matter."
    )
    return Table(("", "95 % interval", "points"), rows, note=note)


def write_card_page(view: CardView, folder: Path, mlflow: str = "none", experiment: str = "cards") -> Path:
    """Write the page of a condition, and record it in MLflow unless it is there already.

    Args:
        view: View of the condition's cards.
        folder: Folder of all cards.
        mlflow: Address of the tracker; ``none`` for no run, ``env`` for that of the environment.
        experiment: Name of the MLflow experiment.

    Returns:
        The HTML page; Markdown and JSON lie beside it.

    """
    first_card = view.cards[0]
    home = RunFolder(folder / first_card.page_stem)
    home.path.mkdir(parents=True, exist_ok=True)
    paths = [home.path / "card.html", home.path / "card.md"]
    is_changed = False
    for path in paths:
        text = view.render_page(path.name)
        is_changed |= not path.is_file() or path.read_text(encoding="utf-8") != text
        write_atomically(path, text)
    tags = {"kind": "card", "condition": first_card.name, "budget": first_card.budget, "verdict": first_card.verdict}
    destination = make_results_destination(mlflow, experiment, first_card.page_stem, {**tags, **read_code_versions()})
    if destination is not None and (is_changed or not _has_mlflow_record(home, destination)):
        command = first_card.command(*view.cards[1:])
        parameters = {"stack": first_card.stack, "baseline": first_card.baseline, "command": command}
        publish_results(home, destination, parameters, _collect_mlflow_metrics(view.cards), files=paths)
    return paths[0]


def _has_mlflow_record(home: RunFolder, target: MLflowDestination) -> bool:
    """Whether a record of the page has been, or is being, delivered to this tracker and experiment."""
    destination = MLflowDestination.load(home.tracking)
    return destination is not None and (destination.tracking_uri, destination.experiment_name) == (
        target.tracking_uri,
        target.experiment_name,
    )


def _collect_mlflow_metrics(cards: Sequence[Card]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for card in cards:
        for section, findings in card.sections.items():
            for finding in findings:
                numbers = {
                    "": finding.estimate,
                    "_low": finding.low,
                    "_high": finding.high,
                    "_baseline": finding.baseline,
                }
                name = f"{card.organism}/{section}/{finding.name}"
                metrics |= {f"{name}{end}": number for end, number in numbers.items() if math.isfinite(number)}
    return metrics
