"""Render the pages whose numbers come from the results of the studies.

python -m studies.render
python -m studies.render --check

Every ``studies/PAGE/TOPIC.md.jinja`` becomes ``TOPIC.md`` beside it, and every ``README.md.jinja`` a ``README.md``. A
template sees the numbers of every ``studies/PAGE/TOPIC_numbers.py`` under the topic's name, and a topic's own template
sees its numbers directly. The README is no template; it must hold the lines of
``studies/readme_sentences.md.jinja``. ``stated("2 pp")`` marks a number that no file of results holds: a set-up, a
limit that was chosen, something that a paper reports; ``{% filter stated %}`` marks a block of them.
"""

import argparse
import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import nodes

from studies.bare_numbers import CLOSE, OPEN, find_bare_numbers
from studies.numbers import FILTERS, ROOT

STUDIES = ROOT / "studies"
README_TEMPLATE = STUDIES / "readme_sentences.md.jinja"
"""Sentences of the README that rest on results; the README holds them as they are rendered."""


def find_page_templates() -> dict[Path, Path]:
    """Return the template of every page that is rendered."""
    return {path.with_suffix(""): path for path in sorted(STUDIES.rglob("*.md.jinja")) if path != README_TEMPLATE}


@cache
def collect_topic_numbers() -> dict[str, dict[str, Any]]:
    """Return the numbers of all topics, by the topic's name."""
    numbers = {}
    for path in sorted(STUDIES.glob("*/*_numbers.py")):
        module = importlib.import_module(f"studies.{path.parent.name}.{path.stem}")
        numbers[path.stem.removesuffix("_numbers")] = module.collect_numbers()
    return numbers


def collect_page_numbers(page: Path) -> dict[str, Any]:
    """Return the numbers that the template of a page sees.

    Raises:
        ValueError: a number of the topic is called like another topic.

    """
    topics = collect_topic_numbers()
    topic_numbers = topics.get(page.stem, {})
    if shadowed := topic_numbers.keys() & topics.keys():
        raise ValueError(f"{page.name}: numbers are called like topics: {sorted(shadowed)}. Rename them.")
    commits = {
        path.parent.name: find_last_commit(path.read_text(encoding="utf-8")) for path in STUDIES.glob("*/commit.txt")
    }
    return topics | topic_numbers | {"made": commits}


def find_last_commit(text: str) -> str:
    r"""Return date and hash of the newest results of a study, or that there are none yet.

    Args:
        text: Content of its ``commit.txt``: name of the results, commit they were made at, and date, line by line.

    Example:
        >>> find_last_commit("noise.csv 88784c72 2026-11-23\nheadline e4a2a4b0 2026-11-25")
        '2026-11-25 e4a2a4b0'

    """
    commits = [line.split() for line in text.splitlines()]
    return max((f"{date} {commit}" for _, commit, date in commits), default="not run")


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
        faults.append(f"{page.relative_to(ROOT)} is not current. Run python -m studies.render.")
    return faults


def list_readme_faults() -> list[str]:
    """Return the sentences that the README should hold and does not, and the numbers that are written out in them."""
    template, numbers = README_TEMPLATE.read_text(encoding="utf-8"), collect_page_numbers(README_TEMPLATE)
    marked, text = (make_environment(marked).from_string(template).render(numbers) for marked in (True, False))
    faults = [f"{README_TEMPLATE.name}: {number} is written out." for number in find_bare_numbers(marked)]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return faults + [f"README.md lacks this line: {line}" for line in text.splitlines() if line not in readme]


def main() -> None:
    """Write the pages, or say what is wrong with them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page has a fault")
    args = parser.parse_args()
    if not args.check:
        for page in find_page_templates():
            page.write_text(render_template_page(page), encoding="utf-8")
        return
    faults = [fault for page in find_page_templates() for fault in list_page_faults(page)] + list_readme_faults()
    print("\n".join(faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
