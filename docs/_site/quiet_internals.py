"""Pages of single modules are left out of the search: what people look for is on the pages above them."""

from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx


def leave_out_of_search(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Take the pages of modules out of the search index, with their titles and objects; add no page.

    The field ``nosearch`` of a page would keep its title and its objects in the index.
    """
    app.builder.indexer.prune({name for name in app.env.all_docs if not name.startswith("_api/")})
    yield from ()


def setup(app: Sphinx) -> dict[str, Any]:
    """Do so when all pages are written and the index is not."""
    app.connect("html-collect-pages", leave_out_of_search)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
