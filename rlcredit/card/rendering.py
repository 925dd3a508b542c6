"""Templates of pages, and numbers as people read them."""

from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined, select_autoescape

from rlcredit.card.finding import Finding
from rlcredit.inspection.visible import escape_markdown
from rlcredit.report.tables import format_p_value, shorten_commit

PLACES = (Path(__file__).parent, Path(__file__).parents[1] / "report")
"""Where templates lie: the card's own, and what all pages share."""


def render_card_template(template: str, content: dict[str, Any]) -> str:
    """Return a template with its content."""
    templates = Environment(
        loader=ChoiceLoader([FileSystemLoader(place) for place in PLACES]),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    if template.endswith(".md"):
        templates.finalize = lambda value: escape_markdown(value) if isinstance(value, str) else value
    return templates.get_template(template).render(
        content,
        value=format_unit_value,
        interval=format_finding_interval,
        cell=format_row_cell,
        small=format_p_value,
        short=shorten_commit,
    )


def format_unit_value(number: float, unit: str) -> str:
    """Write a number in its unit.

    Example:
        >>> format_unit_value(0.0123, "share"), format_unit_value(14.43, "degrees"), format_unit_value(-2.0, "points"), format_unit_value(float("nan"), "share")
        ('1.2 %', '14.4°', '-2.00', '')
        >>> format_unit_value(0.258, "number"), format_unit_value(-1.4e-08, "number")
        ('0.258', '0')

    """
    if np.isnan(number):
        return ""
    written = {
        "share": f"{100 * number:.1f} %",
        "degrees": f"{number:.1f}°",
        "points": f"{number:+.2f}",
        "times": f"x {number:.2f}",
        "steps": f"{number:.1f}",
        "nats": f"{number:.3f}",
    }
    return written.get(unit) or f"{round(number, 4) + 0.0:.3g}"


def format_finding_interval(finding: Finding) -> str:
    """Write the interval of a finding; nothing if it has none."""
    if finding.interval is None:
        return ""
    return f"{format_unit_value(finding.low, finding.unit)} to {format_unit_value(finding.high, finding.unit)}"


def format_with_interval(estimate: float, low: float, high: float, form: str) -> str:
    """Write an estimate and its interval.

    Example:
        >>> format_with_interval(1.25, -0.5, 3.0, "+.1f")
        '+1.2 (-0.5 to +3.0)'

    """
    return f"{estimate:{form}} ({low:{form}} to {high:{form}})"


def format_row_cell(row: Any, name: str, unit: str = "number") -> str:
    """Write a number of a row of texts, with its interval where it has one."""
    number, low, high = (float(row[f"{name}{end}"]) if row[f"{name}{end}"] else np.nan for end in ("", "_low", "_high"))
    ends = "" if np.isnan(low) else f" ({format_unit_value(low, unit)} to {format_unit_value(high, unit)})"
    return f"{format_unit_value(number, unit)}{ends}"
