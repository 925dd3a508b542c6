"""Cards for people: one page that loads nothing, Markdown, and a run in MLflow."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlcredit.card.board import add_shipped_rows, group_rows_by_policy
from rlcredit.card.card import SECTIONS, Card
from rlcredit.card.rendering import render_card_template
from rlcredit.files import write_atomically
from rlcredit.record import RunRecord
from rlcredit.record.destination import MLflowDestination, make_destination
from rlcredit.run_folder.layout import RunFolder
from rlcredit.tracking.versions import read_code_versions


def write_card_page(cards: Sequence[Card], folder: Path, mlflow: str = "none", experiment: str = "cards") -> Path:
    """Write the page of a condition, and record it in MLflow if it is not there yet.

    Args:
        cards: of one condition, one per organism.
        folder: of all cards.
        mlflow: address of the tracker; ``none`` for no run, ``env`` for that of the environment.
        experiment: in MLflow.

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
    """Whether the page has a record on its way to, or at, this tracker and experiment."""
    to = MLflowDestination.load(RunFolder(place).tracking)
    wanted = make_destination(settings, "", {})
    return to is not None and (to.tracking_uri, to.experiment_name) == (wanted.tracking_uri, wanted.experiment_name)


def _record_cards(cards: Sequence[Card], place: Path, paths: Sequence[Path], settings: Mapping[str, Any]) -> None:
    """Keep a record, and have it delivered; if MLflow is away, a message says how later."""
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
