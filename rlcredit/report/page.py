"""One page that needs nothing else, the same in Markdown, and the numbers and pictures behind both."""

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from rlcredit.files import write_atomically
from rlcredit.report import tables
from rlcredit.report.comparison import Comparison, comparisons
from rlcredit.report.evidence import Evidence
from rlcredit.report.pictures import draw_curves, draw_forest
from rlcredit.report.summary import summaries
from rlcredit.report.tables import Table
from rlcredit.report.training import SHOWN, Curve, training_curves
from rlcredit.report.variance import decompositions

REACH = 6
"""A strip beside a verdict shows differences up to so many margins."""

HELD_OUT = {"val/entropy": "entropy of held-out samples, nats", "val/completion_length": "tokens per held-out sample"}


@dataclasses.dataclass(frozen=True)
class Section:
    """A family on the page.

    Args:
        name: the question.
        baseline: its baseline.
        found: its comparisons.
        table: of them.
        pictures: file names by what they show.

    """

    name: str
    baseline: str
    found: Sequence[Comparison]
    table: Table
    pictures: Mapping[str, str]


def written(evidence: Evidence, out: Path) -> list[Comparison]:
    """Write ``report.html``, ``report.md``, CSV files and pictures into a folder; return the comparisons.

    Args:
        evidence: of the campaign.
        out: made if need be; files of an earlier report are overwritten.

    """
    out.mkdir(parents=True, exist_ok=True)
    compared, summarised, variances = comparisons(evidence), summaries(evidence), decompositions(evidence)
    curves = training_curves(evidence)
    for name, text in tables.csv_files(evidence, compared, summarised, variances, curves).items():
        write_atomically(out / name, text)
    sections = [
        _section(evidence, number, name, compared, curves, out)
        for number, name in enumerate(evidence.declaration.compared, start=1)
    ]
    content = {
        "declaration": evidence.declaration,
        "sha256": evidence.declaration.sha256[:12],
        "metric": next(iter(evidence.measures.values())),
        "metric_label": _label(evidence.declaration.primary),
        "reach": REACH * evidence.declaration.effect,
        "finished": len(evidence.runs),
        "declared": evidence.declared,
        "sections": sections,
        "summary": tables.summary_table(summarised, evidence.pass_k),
        "variance": tables.variance_table(variances),
        "seeds": tables.seed_table(evidence),
        "configs": tables.config_table(evidence),
        "refused": evidence.refused,
        "traced": bool(curves),
        "environment": _environment(evidence),
        "questions": next((len(run.numbers) for run in evidence.runs.values()), 0),
    }
    for name in ("report.html", "report.md"):
        write_atomically(out / name, _rendered(name, content, out))
    return compared


def _section(
    evidence: Evidence,
    number: int,
    name: str,
    compared: Sequence[Comparison],
    curves: Mapping[tuple[str, int], Mapping[str, Curve]],
    out: Path,
) -> Section:
    """Draw the pictures of a family; conditions without runs are not in them."""
    family, primary = evidence.declaration.compared[name], evidence.declaration.primary
    found = [each for each in compared if each.family == name]
    members = {each: evidence.of(each) for each in (family.baseline, *family.conditions) if evidence.of(each)}
    drawn: dict[str, str] = {}

    def picture(shows: str) -> Path:
        drawn[shows] = f"family{number}_{len(drawn) + 1}.png"
        return out / drawn[shows]

    if any(len(each.seeds) for each in found):
        draw_forest(found, evidence.declaration.effect, picture(f"differences after step {evidence.declaration.steps}"))
    if members:
        held = {condition: [run.curve(primary) for run in runs] for condition, runs in members.items()}
        draw_curves(held, _label(primary), picture("learning curves"), share=True)
    for metric, label in SHOWN.items():
        values = {
            condition: [row for run in runs if (row := curves.get((condition, run.seed), {}).get(metric))]
            for condition, runs in members.items()
        }
        if any(values.values()):
            smooth = {condition: [_smoothed(curve) for curve in rows] for condition, rows in values.items() if rows}
            draw_curves(smooth, label, picture(f"{label}, training"))
    for metric, label in HELD_OUT.items() if not curves and members else ():
        draw_curves(
            {name: [run.curve(metric) for run in runs] for name, runs in members.items()}, label, picture(label)
        )
    return Section(name, family.baseline, found, tables.comparison_table(found), drawn)


def _label(metric: str) -> str:
    return metric.removeprefix("val/").replace("_at_", "@")


def _smoothed(curve: Curve, window: int = 5) -> Curve:
    """Average a curve over the batches of every window."""
    steps = sorted(curve)
    parts = [steps[start : start + window] for start in range(0, len(steps), window)]
    return {part[-1]: sum(curve[step] for step in part) / len(part) for part in parts}


def _environment(evidence: Evidence) -> dict[str, str]:
    """Return versions and source of all runs; several, where they are not the same."""
    found: dict[str, set[str]] = {}
    for run in evidence.runs.values():
        for name, value in run.entry["versions"].items():
            found.setdefault(name.removeprefix("version."), set()).add(str(value))
    return {name: ", ".join(sorted(values)) for name, values in found.items()}


def _rendered(name: str, content: Mapping[str, Any], out: Path) -> str:
    def data(file: str) -> str:
        return "data:image/png;base64," + base64.b64encode((out / file).read_bytes()).decode()

    def cells(row: Sequence[str]) -> str:
        return "| " + " | ".join(each.replace("|", "\\|") for each in row) + " |"

    def place(difference: float) -> float:
        reach = REACH * content["declaration"].effect
        return round(50 + 50 * max(-1.0, min(1.0, difference / reach)), 2)

    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template(name).render(content, data=data, cells=cells, place=place, signed=tables.signed)
