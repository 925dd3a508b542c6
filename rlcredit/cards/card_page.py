"""Cards for people: one self-contained HTML page, Markdown, and an MLflow run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlcredit.base.files import write_atomically
from rlcredit.cards.card import SECTIONS, Card
from rlcredit.cards.finding import Finding
from rlcredit.cards.ranking import add_shipped_rows, group_rows_by_policy
from rlcredit.outputs.code_versions import read_code_versions
from rlcredit.record import RunRecord
from rlcredit.record.destination import MLflowDestination, make_destination
from rlcredit.report.report_page import TEMPLATES, load_page_template
from rlcredit.report.report_tables import format_p_value, shorten_commit
from rlcredit.run_folder.layout import RunFolder


def render_card_template(template: str, content: dict[str, Any]) -> str:
    """Return a template filled with its content."""
    return load_page_template(template, Path(__file__).parent, TEMPLATES).render(
        content,
        value=format_unit_value,
        interval=format_finding_interval,
        cell=format_row_cell,
        small=format_p_value,
        short=shorten_commit,
    )


def format_unit_value(number: float, unit: str) -> str:
    """Format a number in its unit.

    Example:
        >>> format_unit_value(0.0123, "share"), format_unit_value(14.43, "degrees"), format_unit_value(-2.0, "points")
        ('1.2 %', '14.4°', '-2.00')
        >>> format_unit_value(float("nan"), "share")
        ''
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
    """Format the interval of a finding; empty if it has none."""
    if finding.interval is None:
        return ""
    return f"{format_unit_value(finding.low, finding.unit)} to {format_unit_value(finding.high, finding.unit)}"


def format_with_interval(estimate: float, low: float, high: float, form: str) -> str:
    """Format an estimate with its interval.

    Example:
        >>> format_with_interval(1.25, -0.5, 3.0, "+.1f")
        '+1.2 (-0.5 to +3.0)'

    """
    return f"{estimate:{form}} ({low:{form}} to {high:{form}})"


def format_row_cell(row: Any, name: str, unit: str = "number") -> str:
    """Format a number of a text row, with its interval if it has one."""
    number, low, high = (float(row[f"{name}{end}"]) if row[f"{name}{end}"] else np.nan for end in ("", "_low", "_high"))
    ends = "" if np.isnan(low) else f" ({format_unit_value(low, unit)} to {format_unit_value(high, unit)})"
    return f"{format_unit_value(number, unit)}{ends}"


def write_card_page(cards: Sequence[Card], folder: Path, mlflow: str = "none", experiment: str = "cards") -> Path:
    """Write the page of a condition, and record it in MLflow unless it is there already.

    Args:
        cards: Cards of one condition, one per test policy.
        folder: Folder of all cards.
        mlflow: Address of the tracker; ``none`` for no run, ``env`` for that of the environment.
        experiment: Name of the MLflow experiment.

    Returns:
        The HTML page; Markdown and JSON lie beside it.

    """
    first = cards[0]
    place = folder / f"{first.folder_stem}-{first.budget}"
    place.mkdir(parents=True, exist_ok=True)
    shown = {
        "cards": cards,
        "first": first,
        "titles": SECTIONS,
        "boards": group_rows_by_policy(add_shipped_rows(cards)),
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
    record = RunRecord(RunFolder(place), to=make_destination(settings, f"{first.folder_stem}-{first.budget}", tags))
    try:
        record.log_hyperparams({"stack": first.stack, "baseline": first.baseline, "command": first.command(*cards[1:])})
        metrics: dict[str, float] = {}
        for card in cards:
            for section, found in card.sections.items():
                for one in found:
                    numbers = {"": one.estimate, "_low": one.low, "_high": one.high, "_baseline": one.baseline}
                    name = f"{card.organism}/{section}/{one.name}"
                    metrics |= {f"{name}{end}": number for end, number in numbers.items() if np.isfinite(number)}
        record.log_metrics(metrics, step=0)
        for path in paths:
            record.log_file(path)
    finally:
        record.close("FINISHED")
