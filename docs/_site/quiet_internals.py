"""Pages of single modules are left out of the search: what people look for is on the pages above them."""

from typing import Any

from sphinx.application import Sphinx


def leave_out_of_search(app: Sphinx, name: str, source: list[str]) -> None:
    """Mark the page of a module as one that the search does not know."""
    if name.startswith("_api/"):
        source[0] = f":nosearch:\n\n{source[0]}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Mark these pages when they are read."""
    app.connect("source-read", leave_out_of_search)
    return {"parallel_read_safe": True}
