"""Write the tables of docs/reference from the code, so that a new operator or option needs no row by hand.

python scripts/render_reference.py            # write what has changed
python scripts/render_reference.py --check    # exit with 1 if a page is not current
"""

import argparse
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from card_tables import render_card_sizes, render_card_times
from docstring_markdown import (
    link_cited_papers,
    parse_parameters,
    render_docstring_prose,
    render_first_sentence,
    render_one_line,
)
from option_tables import render_options

import callbacks
import rlcredit.losses
from rlcredit.cli.new_operator import render_operator
from rlcredit.credit.catalogue import find_operator_classes
from rlcredit.credit.rollout import FACT_FIELDS, ROLLOUT_FIELDS, Rollout
from rlcredit.losses import PolicyLoss
from rlcredit.pages.tables import Table
from rlcredit.training.metric_glossary import EPISODE_METRICS, METRIC_MEANINGS, MetricMeaning

_PROJECT_FOLDER = Path(__file__).parents[1]
REFERENCE_FOLDER = _PROJECT_FOLDER / "docs" / "reference"
_BLOCK_PATTERN = r"(<!-- {name}: written by scripts/render_reference\.py -->\n).*?(<!-- end of {name} -->)"


def group_operators_by_folder() -> dict[str, list[type]]:
    """Return the operators of every folder of ``callbacks``, in the order that its docstring gives."""
    folders: dict[str, list[type]] = {}
    for operator in find_operator_classes():
        folders.setdefault(operator.__module__.split(".")[1], []).append(operator)
    order = [word for word in re.findall(r"\w+", callbacks.__doc__ or "") if word in folders]
    if missing := folders.keys() - set(order):
        raise ValueError(f"The docstring of callbacks names no {sorted(missing)}. Name every folder, in stack order.")
    return {name: folders[name] for name in dict.fromkeys(order)}


def render_operators() -> str:
    """Return all rooms but the probes."""
    return "\n\n".join(
        render_operator_folder(name, kinds) for name, kinds in group_operators_by_folder().items() if name != "probes"
    )


def render_probes() -> str:
    """Return the room of the probes."""
    return render_class_list(
        group_operators_by_folder()["probes"], "reads", lambda kind: render_field_names(kind.reads)
    )


def render_losses() -> str:
    """Return all losses."""
    members = [getattr(rlcredit.losses, name) for name in rlcredit.losses.__all__]
    kinds = [kind for kind in members if inspect.isclass(kind) and kind is not PolicyLoss]
    return render_class_list(kinds, "needs", lambda kind: render_field_names(kind.needs))


def render_operator_folder(name: str, kinds: list[type]) -> str:
    """Return a folder: its docstring as heading, a table, and an entry for every class."""
    heading = render_one_line(importlib.import_module(f"callbacks.{name}").__doc__ or "").rstrip(".").replace("`", "")
    return f"## {heading}\n\n" + render_class_list(
        kinds, "reads", lambda kind: render_field_names(kind.reads), "writes"
    )


def render_class_list(
    kinds: list[type], input_column: str, render_inputs: Callable[[Any], str], output_column: str = ""
) -> str:
    """Return a table of classes, and an entry for each."""
    columns = ["class", "what it does", input_column, *([output_column] if output_column else []), "papers"]
    rows = [
        [f"[`{kind.__name__}`](#{kind.__name__.lower()})", find_purpose_sentence(kind), render_inputs(kind)]
        for kind in kinds
    ]
    for row, kind in zip(rows, kinds, strict=True):
        row += [
            *([render_field_names(kind.writes)] if output_column else []),
            link_cited_papers(collect_docstrings(kind)) or "-",
        ]
    return "\n\n".join([Table(columns, rows).to_markdown(), *map(render_class_entry, kinds)])


def render_field_names(names: Iterable[str]) -> str:
    """Return names in alphabetical order, or that there are none."""
    return ", ".join(f"`{name}`" for name in sorted(names)) or "nothing"


def render_class_entry(kind: type) -> str:
    """Return one class: signature, what its docstring and those of its formulas say, parameters."""
    docstring = inspect.getdoc(kind) or ""
    parts = [
        f"### {kind.__name__}",
        f"```text\n{kind.__name__}{render_signature(kind)}\n```",
        find_purpose_sentence(kind),
    ]
    parts += [
        f"`{name}`: {render_docstring_prose(text)}" for name, text in collect_formula_docstrings(kind).items()
    ] + [render_docstring_prose(docstring)]
    formula_descriptions = {
        p.arg_name: p.description or ""
        for text in collect_formula_docstrings(kind).values()
        for p in parse_parameters(text)
    }
    parameters = []
    for parameter in parse_parameters(docstring):
        formula_description = formula_descriptions.get(parameter.arg_name, "")
        description = append_neutral_value(parameter.description or "", formula_description)
        parameters.append(f"- `{parameter.arg_name}`: {render_one_line(description)}")
    parts += ["\n".join(parameters)] if parameters else []
    if neutral := getattr(kind, "neutral", None):
        parts.append(f"It does nothing with `{', '.join(f'{name}={value!r}' for name, value in neutral.items())}`.")
    if getattr(kind, "rewards", "") == "binary":
        parts.append(
            "It takes rewards of one for right and zero for wrong only, and is refused where a task gives others."
        )
    path = Path(inspect.getfile(kind)).relative_to(_PROJECT_FOLDER).as_posix()
    return "\n\n".join([*filter(None, parts), f"Code: [{path}](../../{path})"])


def append_neutral_value(description: str, formula_description: str) -> str:
    """Add what the formula says of a parameter behind a semicolon, usually its neutral value."""
    neutral_value = formula_description.partition("; ")[2]
    return f"{description.rstrip('.')}; {neutral_value}" if neutral_value and ";" not in description else description


def render_signature(kind: type) -> str:
    """Return the parameters with their defaults, without types."""
    signature = inspect.signature(kind)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def find_purpose_sentence(kind: type) -> str:
    """Return the sentence at the head of the file, without the name in front of it."""
    text = render_first_sentence(inspect.getmodule(kind).__doc__ or "")  # pyright: ignore[reportOptionalMemberAccess]
    name, colon, purpose = text.partition(": ")
    text = purpose if colon and len(name) < 40 else text
    return text if text[1:3] == " (" else text[0].upper() + text[1:]


def collect_docstrings(kind: type) -> list[str]:
    """Return the docstrings that describe a class: those of its formulas, and its own."""
    return [*collect_formula_docstrings(kind).values(), inspect.getdoc(kind) or ""]


def collect_formula_docstrings(kind: type) -> dict[str, str]:
    """Return the docstrings of the functions in the file of a class, and of the shared ones that they name."""
    module = inspect.getmodule(kind)
    assert module is not None
    functions = {name: value for name, value in vars(module).items() if inspect.isfunction(value)}
    own_docstrings = {
        name: inspect.getdoc(function) or ""
        for name, function in functions.items()
        if function.__module__ == module.__name__ and not name.startswith("_")
    }
    function_names = re.findall(
        r":func:`~?(?:[\w.]+\.)?(\w+)`", "\n".join([*own_docstrings.values(), inspect.getdoc(kind) or ""])
    )
    shared_docstrings = {
        name: inspect.getdoc(functions[name]) or ""
        for name in function_names
        if name in functions and name not in own_docstrings
    }
    return shared_docstrings | own_docstrings


def render_metrics(meanings: Mapping[str, MetricMeaning] = METRIC_MEANINGS) -> str:
    """Return metrics with their meanings, those of a default run if no others are named."""
    rows = [(f"`{name}`", metric.meaning, metric.unit or "-", metric.taken or "-") for name, metric in meanings.items()]
    return Table(("metric", "meaning", "unit", "where it is taken"), rows).to_markdown()


def render_rollout_fields() -> str:
    """Return the fields that an operator may name, facts first, with shape, meaning and neutral value."""
    descriptions = {
        p.arg_name: render_one_line(p.description or "") for p in parse_parameters(inspect.getdoc(Rollout) or "")
    }
    rows = []
    for name in sorted(ROLLOUT_FIELDS, key=lambda field: (field not in FACT_FIELDS, list(descriptions).index(field))):
        text, _, neutral = descriptions[name].partition("; neutral: ")
        shape = re.search(r", `(\([^`]*\))`(?: (\w+))?", text)
        meaning = text.replace(shape[0], "") if shape else text
        neutral_text = "-" if name in FACT_FIELDS else neutral.rstrip(".") or describe_neutral_default(name)
        rows.append(
            (f"`{name}`", f"`{shape[1]}` {shape[2] or ''}".strip() if shape else "-", meaning.rstrip("."), neutral_text)
        )
    return Table(("field", "shape", "meaning", "neutral value"), rows).to_markdown()


def render_operator_file() -> str:
    """Return the file that ``rlcredit new operator my_operator.py`` writes."""
    return f"```python\n# my_operator.py\n{render_operator('MyOperator')}```"


def describe_neutral_default(name: str) -> str:
    """Return the neutral value of a field whose description names none."""
    return {"logprobs": "`old_logprobs`"}[name]


PAGE_CONTENTS: dict[str, dict[str, Callable[[], str]]] = {
    "operators.md": {"operators": render_operators},
    "probes.md": {"probes": render_probes},
    "losses.md": {"losses": render_losses},
    "configuration.md": {"options": render_options},
    "metrics.md": {"metrics": render_metrics, "turns": partial(render_metrics, EPISODE_METRICS)},
    "../howto/model.md": {"sizes": render_card_sizes},
    "../howto/one_card.md": {"times": render_card_times},
    "../howto/operator.md": {"file": render_operator_file, "fields": render_rollout_fields},
}


def render_reference_page(page: str) -> str:
    """Return a page as it should be."""
    text = (REFERENCE_FOLDER / page).read_text(encoding="utf-8")
    for name, content in PAGE_CONTENTS[page].items():
        block = re.compile(_BLOCK_PATTERN.format(name=name), re.DOTALL)
        if len(block.findall(text)) != 1:
            raise ValueError(f"{page} has {len(block.findall(text))} blocks `{name}`, expected one.")
        head, _, tail = text.partition(block.search(text)[0])  # pyright: ignore[reportOptionalSubscript]
        start, end = block.findall(text)[0]
        text = f"{head}{start}\n{content()}\n\n{end}{tail}"
    return text


def main() -> int:
    """Write the pages, or say which are not current."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if a page is not current")
    check = parser.parse_args().check
    stale = [
        page
        for page in PAGE_CONTENTS
        if render_reference_page(page) != (REFERENCE_FOLDER / page).read_text(encoding="utf-8")
    ]
    for page in stale:
        print(f"{REFERENCE_FOLDER / page} is not current" if check else f"wrote {REFERENCE_FOLDER / page}")
        if not check:
            (REFERENCE_FOLDER / page).write_text(render_reference_page(page), encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
