"""Pages of single modules are left out of search and navigation: what people look for is on the pages above them."""

from collections.abc import Iterator
from typing import Any

from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PAGES = "_api/"
"""Beginning of the names of such pages."""


def leave_out_of_navigation(app: Sphinx, env: BuildEnvironment) -> Iterator[str]:
    """Cut the pages of modules from the tree of pages that every page shows; they are linked from their tables."""
    for name, contents in env.tocs.items():
        if any(included.startswith(PAGES) for included in env.toctree_includes.get(name, ())):
            for tree in list(contents.findall(addnodes.toctree)):
                tree.parent.remove(tree)
    yield from ()


def leave_out_of_search(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Take the pages of modules out of the search index, with their titles and objects; add no page.

    The field ``nosearch`` of a page would keep its title and its objects in the index.
    """
    indexer = app.builder.indexer
    shown = {name for name in app.env.all_docs if not name.startswith(PAGES)}
    indexer.prune(shown)
    for name in indexer._index_entries.keys() - shown:  # prune leaves them, and fails over them later
        del indexer._index_entries[name]
    yield from ()


def setup(app: Sphinx) -> dict[str, Any]:
    """Do so when all pages are read, and when all are written and the index is not."""
    app.connect("env-updated", leave_out_of_navigation)
    app.connect("html-collect-pages", leave_out_of_search)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
