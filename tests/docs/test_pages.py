"""Pages are what their templates say with the numbers of the results, and name code that exists."""

import importlib.util
import re
from pathlib import Path

import jinja2
import pytest
from docs.bare_numbers import find_bare_numbers
from docs.numbers import require_claim
from docs.render import find_constant_expressions, find_page_templates, list_page_faults

from docs import render

ROOT = Path(__file__).parents[2]
PAGES = find_page_templates()
DOCS = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "/_" not in page.as_posix()]
SPEAKING = [*DOCS, *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG"))]
CODE = re.compile(r"(?<![\w/.-])(?:rlcredit|callbacks|scripts|configs|tests|docs)/[\w./-]*\w")
MODULE = re.compile(r"(?<![\w/.-])(?:rlcredit|callbacks|docs)(?:\.[a-z]\w*)+(?![\w/])")


TAGS = {"rlcredit.key"}
"""Dotted names that are tags of MLflow."""


def list_missing_paths(text):
    """Return the paths and modules that a page names and that do not exist."""
    paths = [path for path in CODE.findall(text) if not list(ROOT.glob(path)) and not list(ROOT.glob(f"{path}*"))]
    return paths + [name for name in MODULE.findall(text) if not (name in TAGS or is_module(name))]


def is_module(name):
    """Say whether a dotted name is a module, or a name in one."""
    for module, attribute in ((name, None), name.rpartition(".")[::2]):
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is not None:
            return attribute is None or hasattr(importlib.import_module(module), attribute)
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_what_its_template_says(page):
    assert list_page_faults(page) == []


@pytest.mark.parametrize("page", SPEAKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_that_a_page_names_exists(page):
    assert list_missing_paths(page.read_text(encoding="utf-8")) == []


def test_code_that_does_not_exist_is_found():
    text = (
        "`rlcredit/no_such_room/file.py`, `callbacks.no_such_module`, `rlcredit/base` and `rlcredit.cards.leaderboard`"
    )
    assert list_missing_paths(text) == ["rlcredit/no_such_room/file.py", "callbacks.no_such_module"]


@pytest.mark.parametrize(
    "said", ["5.1 points", "27 %", "two of eight runs", "-0.3", "162 cases", "39 of 40", "2 pp", "20 degrees"]
)
def test_a_number_that_is_written_out_is_found(said):
    assert find_bare_numbers(f"It is ahead by {said}.") == [said]
    assert find_bare_numbers(f"It is ahead by \x02{said}\x03.") == []


@pytest.mark.parametrize(
    "said",
    ["`lr 0.5`", "```\n0.5\n```\n", "$\\eta=0.5$", "arXiv 2501.12345", "version 0.3.2", "Qwen3-0.6B", "eight seeds"],
)
def test_a_number_of_code_or_of_a_name_is_no_measured_one(said):
    assert find_bare_numbers(f"See\n\n{said}") == []


def test_every_study_and_every_page_with_findings_has_a_template():
    names = {str(page.relative_to(ROOT)) for page in PAGES}
    studies = {str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "studies").glob("*.md")}
    assert names == studies | {"README.md", "docs/findings.md", "docs/leaderboard.md"}


def test_a_page_that_was_changed_by_hand_has_a_fault(tmp_path, monkeypatch):
    template, page = tmp_path / "docs" / "templates" / "page.md.jinja", tmp_path / "docs" / "page.md"
    template.parent.mkdir(parents=True)
    template.write_text("It gains {{ 2.5 }} points, {{ stated('8 pairs') }}, 3.5 %.\n", encoding="utf-8")
    page.write_text("It gains 2.5 points, 8 pairs, 4.5 %.\n", encoding="utf-8")
    for name, value in {"ROOT": tmp_path, "find_page_templates": lambda: {page: template}}.items():
        monkeypatch.setattr(render, name, value)
    constant, written, stale = list_page_faults(page)
    assert "page.md.jinja:1: an expression without a name" in constant
    assert "3.5 % is written out" in written
    assert "docs/page.md is not current" in stale


def test_a_number_that_results_lack_is_refused():
    with pytest.raises(jinja2.UndefinedError, match="no_such_number"):
        render.make_environment().from_string("{{ headline.no_such_number }}").render(headline={})


def test_a_claim_that_no_longer_holds_is_refused():
    require_claim([1], "one run collapses")
    with pytest.raises(ValueError, match=r"no longer say that one run collapses\. Change the page"):
        require_claim([], "one run collapses")


def test_an_expression_of_constants_is_found():
    assert find_constant_expressions("{{ 5 }}\n{% set gain = 5.1 %}\n{{ gain }} {{ stated('2 pp') }}") == [1, 2]
