"""Pages name code that exists."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


@pytest.mark.parametrize("page", SPEAKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_that_a_page_names_exists(page):
    assert list_missing_paths(page.read_text(encoding="utf-8")) == []


def test_code_that_does_not_exist_is_found():
    text = (
        "`rlcredit/no_such_room/file.py`, `callbacks.no_such_module`, `rlcredit/base` and `rlcredit.cards.leaderboard`"
    )
    assert list_missing_paths(text) == ["rlcredit/no_such_room/file.py", "callbacks.no_such_module"]
