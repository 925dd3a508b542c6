"""Render the pages whose numbers come from the results of the studies.

python -m docs.render
python -m docs.render --check

``docs/studies/NAME/page.md.jinja`` becomes ``docs/studies/NAME.md``, ``docs/templates/README.md.jinja`` the README, and
any other ``docs/templates/PAGE.md.jinja`` the page ``docs/PAGE.md``. A template sees the numbers of every study under
the study's name, and that of a study its own ones directly. ``stated("2 pp")`` marks a number that no file of results
holds: a set-up, a limit that was chosen, something that a paper reports; ``{% filter stated %}`` marks a block of them.
"""

import argparse
import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from docs.bare_numbers import CLOSE, OPEN, find_bare_numbers
from docs.numbers import FILTERS, ROOT
from jinja2 import nodes

DOCS = ROOT / "docs"
STUDIES = DOCS / "studies"
TEMPLATES = DOCS / "templates"


def find_page_templates() -> dict[Path, Path]:
    """Return the template of every page that is rendered."""
    found = {STUDIES / f"{path.parent.name}.md": path for path in sorted(STUDIES.glob("*/page.md.jinja"))}
    for path in sorted(TEMPLATES.rglob("*.md.jinja")):
        name = path.relative_to(TEMPLATES).with_suffix("")
        found[(ROOT if name == Path("README.md") else DOCS) / name] = path
    return found


@cache
def collect_study_numbers() -> dict[str, dict[str, Any]]:
    """Return the numbers of all studies, by the study's name."""
    names = sorted(path.parent.name for path in STUDIES.glob("*/numbers.py"))
    return {name: importlib.import_module(f"docs.studies.{name}.numbers").collect_numbers() for name in names}


def collect_page_numbers(page: Path) -> dict[str, Any]:
    """Return what the template of a page sees.

    Raises:
        ValueError: a number of the study is called like another study.

    """
    studies = collect_study_numbers()
    own = studies.get(page.stem, {}) if page.parent == STUDIES else {}
    if shadowed := own.keys() & studies.keys():
        raise ValueError(f"{page.name}: numbers are called like studies: {sorted(shadowed)}. Rename them.")
    return studies | own


def keep_stated(text: str) -> str:
    """Return a number that no file of results holds, as it is."""
    return text


def mark_expression(value: Any) -> str:
    """Return what an expression gives, between marks."""
    return f"{OPEN}{value}{CLOSE}"


def make_environment(marked: bool = False) -> jinja2.Environment:
    """Return the environment of the templates.

    Args:
        marked: Whether expressions are put between marks, so that what the template says itself can be told from them.

    """
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=mark_expression if marked else None,
    )
    environment.filters |= FILTERS
    environment.globals["stated"] = keep_stated
    environment.filters["stated"] = mark_expression if marked else keep_stated
    return environment


def render_template_page(page: Path, marked: bool = False) -> str:
    """Return the text of a page.

    Args:
        page: Path of the page, a key of `find_page_templates`.
        marked: Whether expressions are put between marks.

    """
    text = find_page_templates()[page].read_text(encoding="utf-8")
    return make_environment(marked).from_string(text).render(collect_page_numbers(page))


def find_constant_expressions(template: str) -> list[int]:
    """Return the lines of a template on which an expression or a variable holds constants only.

    Example:
        >>> find_constant_expressions("{{ gain }} and {{ 5.1 }}")
        [1]

    """
    tree = make_environment().parse(template)
    outputs = (child for output in tree.find_all(nodes.Output) for child in output.nodes)
    expressions = [child for child in outputs if not isinstance(child, nodes.TemplateData)]
    expressions += [assignment.node for assignment in tree.find_all(nodes.Assign)]
    return [each.lineno for each in expressions if not isinstance(each, nodes.Name) and not each.find(nodes.Name)]


def list_page_faults(page: Path) -> list[str]:
    """Return what is wrong with a page: it is not current, or its template holds numbers itself."""
    template = find_page_templates()[page]
    name = template.relative_to(ROOT)
    lines = find_constant_expressions(template.read_text(encoding="utf-8"))
    faults = [f"{name}:{line}: an expression without a name. Take the number from results." for line in lines]
    for number in find_bare_numbers(render_template_page(page, marked=True)):
        faults.append(f'{name}: {number} is written out. Take it from results, or mark it: stated("{number}").')
    if not page.exists() or page.read_text(encoding="utf-8") != render_template_page(page):
        faults.append(f"{page.relative_to(ROOT)} is not current. Run python -m docs.render.")
    return faults


def main() -> None:
    """Write the pages, or say what is wrong with them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page has a fault")
    args = parser.parse_args()
    if not args.check:
        for page in find_page_templates():
            page.write_text(render_template_page(page), encoding="utf-8")
        return
    faults = [fault for page in find_page_templates() for fault in list_page_faults(page)]
    print("\n".join(faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
