"""Pages of the repository's root and of its studies in the site, and what else the site needs of the sources."""

import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
INCLUDED = "```{include} README.md\n```"
PAGES = ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")


def copy_root_pages(app: Sphinx) -> None:
    """Write the pages where Sphinx finds them, their links into docs turned around."""
    (DOCS / "_root").mkdir(exist_ok=True)
    for name in PAGES:
        text = (DOCS.parent / f"{name}.md").read_text(encoding="utf-8").replace("](docs/README.md)", "](/index.md)")
        text = re.sub(r"\[([^]]+)\]\([\w.]+\.cff\)", r"`\1`", text.replace("](docs/", "](/"))
        path = DOCS / "_root" / f"{name.lower()}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != link_root_pages(text):
            path.write_text(link_root_pages(text), encoding="utf-8")


def copy_study_pages(app: Sphinx) -> None:
    """Write the pages and pictures of the studies where Sphinx finds them; links to other files become text."""
    studies = DOCS.parent / "studies"
    for page in [studies / "README.md", *studies.glob("*/*.md")]:
        text = re.sub(r"\]\((?:\.\./)+docs/", "](/", page.read_text(encoding="utf-8"))
        text = re.sub(r"(?<!!)\[([^]]+)\]\((?!https?:|#|/)(?:(?:\.\./){2}|(?![^)]*\.md[#)]))[^)]*\)", r"\1", text)
        path = DOCS / "_studies" / page.relative_to(studies)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copytree(studies / "pictures", DOCS / "_studies" / "pictures", dirs_exist_ok=True)


def link_root_pages(text: str) -> str:
    """Return a page whose links to the root and to the studies go to the copies."""
    text = re.sub(r"\[([^]]+)\]\((?:\.\./)*studies/(?![^)]*\.md[#)])[^)]*\)", r"\1", text)
    text = re.sub(r"\]\((?:\.\./)*studies/", "](/_studies/", text)
    return re.sub(rf"\]\((?:\.\./)*({'|'.join(PAGES)})\.md", lambda found: f"](/_root/{found[1].lower()}.md", text)


def turn_source_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Turn the links of a page to the root; the name of a folder of the repository, which no site has, is no link."""
    source[0] = re.sub(r"\[([^]]+)\]\((?:\.\./)+configs/[\w/]+\)", r"\1", source[0])
    if name == "index":
        source[0] = source[0].replace(INCLUDED, link_root_pages((DOCS / "README.md").read_text(encoding="utf-8")))
    if not name.startswith(("_root/", "_studies/", "_api/")):
        source[0] = re.sub(r"\]\((?=README\.md)", "](./", source[0]) if name == "index" else link_root_pages(source[0])


def shield_constant_docstring(app: Sphinx, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Keep napoleon from taking the words before a colon for the type of a constant."""
    if kind in ("data", "attribute") and lines:
        lines.insert(0, "")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect."""
    app.connect("builder-inited", copy_root_pages)
    app.connect("builder-inited", copy_study_pages)
    app.connect("source-read", turn_source_links)
    app.connect("autodoc-process-docstring", shield_constant_docstring, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
