"""A card as text for a terminal: what one batch says."""

import textwrap
from collections.abc import Iterator, Sequence

from rlcredit.cards.card import SECTIONS, Card
from rlcredit.cards.finding import Finding
from rlcredit.cards.stack_properties import classify_property
from rlcredit.pages.number_formats import format_unit_interval, format_unit_value
from rlcredit.pages.tables import Table

MARKS = {"holds": "\N{CHECK MARK}", "fails": "\N{BALLOT X}", "differs": "\N{BULLET}"}
"""Marks of properties; of those without yes or no there is none."""

COMPARED = {
    "moved": "moved",
    "moved_within": "within",
    "without_credit": "without",
    "confidence": "on the likely",
    "angle": "angle",
}
"""Findings that are shown beside each other where several operators are judged, with the heads of their columns."""

LEFT_OUT = {
    "gradient": "the gradient",
    "truth": "true credit",
    "learning": "learning",
    "cost": "cost",
}
"""Sections that a batch from a file may lack, in words."""


def explain_left_out(card: Card) -> str:
    """Return in one sentence what a card of a batch lacks and why; empty for other cards."""
    if not card.is_of_rollout:
        return ""
    *some, last = (words for name, words in LEFT_OUT.items() if not card.sections.get(name))
    gradient = "" if card.sections.get("gradient") else " --model names the policy and adds the gradient."
    return (
        f"A file holds a batch and no policy, verifier or run, so {', '.join(some)} and {last} are left out; "
        f"`rlcredit card {card.name}` measures them on a test policy.{gradient}"
    )


def render_card_text(card: Card, columns: int) -> Iterator[str]:
    """Yield the lines of a card.

    Args:
        card: Card of a batch.
        columns: Width of the terminal.

    """
    yield f"{card.name} on {card.organism}, beside {card.baseline}: {card.verdict}"
    yield from textwrap.wrap(card.sentence, columns)
    for warning in card.warnings:
        yield ""
        yield from textwrap.wrap(f"warning: {warning}", columns)
    for name, title in SECTIONS.items():
        if findings := card.sections.get(name):
            yield ""
            yield title
            yield from _render_findings(card, findings)
    yield ""
    yield "What was checked"
    longest = max(len(each.name) for each in card.properties)
    for each in card.properties:
        mark = MARKS.get(classify_property(each), " ")
        first = f"  {mark} {each.name.ljust(longest)}  "
        yield from textwrap.wrap(
            each.sentence, max(columns, len(first) + 20), initial_indent=first, subsequent_indent=" " * len(first)
        )
    yield ""
    yield from textwrap.wrap(explain_left_out(card), columns)


def _render_findings(card: Card, findings: Sequence[Finding]) -> Iterator[str]:
    rows = [
        (
            f"  {each.title}",
            format_unit_value(each.estimate, each.unit),
            format_unit_interval(each.low, each.high, each.unit),
            format_unit_value(each.baseline, each.unit),
        )
        for each in findings
    ]
    yield from Table(("", "here", "95 %", card.baseline), rows).to_text().splitlines()


def render_comparison_text(cards: Sequence[Card]) -> str:
    """Return a table of several cards of one batch."""
    shown = {name: head for name, head in COMPARED.items() if any(card.finding(name) for card in cards)}
    rows = [(card.name, *(_format_finding(card.finding(name)) for name in shown)) for card in cards]
    return Table((cards[0].organism, *shown.values()), rows).to_text()


def _format_finding(finding: Finding | None) -> str:
    return format_unit_value(finding.estimate, finding.unit) if finding else ""
