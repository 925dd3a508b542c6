"""Pages are what their templates say with the numbers of the results, and name files that exist."""

import re
from pathlib import Path

import jinja2
import pytest

from studies import render
from studies.bare_numbers import find_bare_numbers
from studies.numbers import require_claim
from studies.render import find_constant_expressions, find_page_templates, list_page_faults
from tests.contracts.test_docs_links import broken, prose

ROOT = Path(__file__).parents[2]
PAGES = find_page_templates()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_what_its_template_says(page):
    assert list_page_faults(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    assert list(broken(page, prose(page))) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_files_of_studies_that_a_page_names_exist(page):
    names = re.findall(r"(?<![\w/.-])studies/[\w./-]*\w", page.read_text(encoding="utf-8"))
    modules = re.findall(r"(?<![\w/.-])studies(?:\.[a-z]\w*)+", page.read_text(encoding="utf-8"))
    names += [f"{module.replace('.', '/')}.py" for module in modules]
    assert [name for name in names if not list(ROOT.glob(f"{name}*"))] == []


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


def test_every_page_has_a_template():
    pages = [page for page in (ROOT / "studies").rglob("*.md") if ".jinja" not in page.name]
    assert sorted(PAGES) == sorted(pages)


def test_a_page_that_was_changed_by_hand_has_a_fault(tmp_path, monkeypatch):
    template, page = tmp_path / "studies" / "page.md.jinja", tmp_path / "studies" / "page.md"
    template.parent.mkdir(parents=True)
    template.write_text("It gains {{ 2.5 }} points, {{ stated('8 pairs') }}, 3.5 %.\n", encoding="utf-8")
    page.write_text("It gains 2.5 points, 8 pairs, 4.5 %.\n", encoding="utf-8")
    for name, value in {"ROOT": tmp_path, "find_page_templates": lambda: {page: template}}.items():
        monkeypatch.setattr(render, name, value)
    constant, written, stale = list_page_faults(page)
    assert "page.md.jinja:1: an expression without a name" in constant
    assert "3.5 % is written out" in written
    assert "studies/page.md is not current" in stale


def test_a_number_that_results_lack_is_refused():
    with pytest.raises(jinja2.UndefinedError, match="no_such_number"):
        render.make_environment().from_string("{{ headline.no_such_number }}").render(headline={})


def test_a_claim_that_no_longer_holds_is_refused():
    require_claim([1], "one run collapses")
    with pytest.raises(ValueError, match=r"no longer say that one run collapses\. Change the page"):
        require_claim([], "one run collapses")


def test_an_expression_of_constants_is_found():
    assert find_constant_expressions("{{ 5 }}\n{% set gain = 5.1 %}\n{{ gain }} {{ stated('2 pp') }}") == [1, 2]
