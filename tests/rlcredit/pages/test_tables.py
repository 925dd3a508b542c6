"""One table, as Markdown, as text and as HTML."""

import re

import pytest

from rlcredit.pages.page_template import TEMPLATE_FOLDER, load_page_template
from rlcredit.pages.tables import Table, TableCell

TABLE = Table(
    ("policy", "pass@1", "verdict"),
    [
        (TableCell("base", hint="<made> by hand"), TableCell("0.5", sort_key=0.5), "a|b"),
        ("taught", TableCell("", sort_key=""), TableCell("better", css_class="better")),
    ],
    text_columns=("verdict",),
    highlighted=("taught",),
)


@pytest.fixture
def page(tmp_path):
    """Return the table as an HTML page shows it."""
    path = tmp_path / "page.html"
    path.write_text('{% from "table.html" import show_table %}{{ show_table(table, sortable=true) }}')
    return load_page_template(path).render(table=TABLE)


def test_markdown_separates_columns_by_bars_alone():
    assert TABLE.to_markdown().splitlines() == [
        "| policy | pass@1 | verdict |",
        "|---|---|---|",
        "| base | 0.5 | a\\|b |",
        "| taught | | better |",
    ]


def test_text_is_aligned_to_the_left_and_numbers_to_the_right():
    assert TABLE.to_text().splitlines() == [
        "policy   pass@1   verdict",
        "base        0.5   a|b",
        "taught            better",
    ]


def test_a_page_has_what_sorts_explains_and_colours(page):
    first, second = re.findall(r"<tr.*?</tr>", page)[1:]
    assert '<th class="text">policy</th><th>pass@1</th><th class="text">verdict</th>' in page
    assert '<td class="text" title="&lt;made&gt; by hand">base</td>' in first
    assert '<td data-value="0.5">0.5</td>' in first
    assert first.startswith("<tr><td")
    assert second.startswith('<tr class="own"><td')
    assert '<td data-value=""></td>' in second
    assert '<td class="text better">better</td>' in second


@pytest.mark.parametrize("path", sorted(TEMPLATE_FOLDER.glob("*.*")), ids=lambda path: path.name)
def test_what_pages_share_loads_nothing(path):
    assert not re.search(r"https?:|\bsrc=|\bhref=|url\(|@import|<link|fetch\(", path.read_text(encoding="utf-8"))
