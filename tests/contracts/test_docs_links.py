"""Every link of the documentation that stays inside the repository leads somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "/_" not in page.as_posix()]
PAGES = [*ROOT.glob("*.md"), *DOCS]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page):
    """Return a page without its code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """Return what a heading of a page is linked by on GitHub."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken(page, text):
    """Return the links of a text, as part of a page, that lead nowhere."""
    for link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    assert list(broken(page, prose(page))) == []


def test_a_link_that_leads_nowhere_is_found():
    text = "[a](nowhere.md) [b](#no-such-heading) [c](README.md) [d](https://example.org/x) [e](README.md#start)"
    assert list(broken(ROOT / "README.md", text)) == ["nowhere.md", "#no-such-heading"]


def test_every_page_is_reached_from_the_index():
    reached, queue = set(), [ROOT / "docs" / "README.md"]
    while queue:
        page = queue.pop()
        if page not in reached:
            reached.add(page)
            paths = [link.partition("#")[0] for link in LINK.findall(prose(page)) if not re.match(r"[a-z]+:|#", link)]
            queue += [(page.parent / path).resolve() for path in paths if path.endswith(".md")]
    assert set(DOCS) - {ROOT / "docs" / "index.md"} <= reached  # the site's table of contents


def test_every_file_that_code_names_in_docs_exists():
    files = [
        path for folder in ("rlcredit", "callbacks", "scripts", "configs", ".ci") for path in (ROOT / folder).rglob("*")
    ]
    for file in files:
        if file.suffix in (".py", ".yaml", ".toml", ".md"):
            for name in re.findall(r"(?<![\w/])docs/[\w/.]*\w", file.read_text(encoding="utf-8")):
                assert (ROOT / name).exists(), f"{file} names {name}"


def test_the_site_has_every_page():
    listed = set(
        re.findall(r"^([a-z]\w*(?:/\w+)?)$", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    pages = {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in DOCS}
    assert listed - {"api"} == pages - {"README", "index"}
