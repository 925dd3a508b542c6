"""Names: no two modules export one, and a function says what it does to what."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = [path for folder in ("rlcredit", "callbacks", "scripts") for path in sorted((ROOT / folder).rglob("*.py"))]
DEFINED = [
    (node.name, path.relative_to(ROOT).as_posix(), isinstance(node, ast.FunctionDef))
    for path in CODE
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
]
FIELD = {"main", "setup", "surprisal", "sigmoid"}
"""Names of one word that a reader of this field, or a tool, knows."""


def test_no_two_modules_export_one_name():
    places = defaultdict(set)
    for name, path, _ in DEFINED:
        if not name.startswith("_") and name != "main":  # every script has one
            places[name].add(path)
    assert len(places) > 1000
    assert {name: sorted(paths) for name, paths in places.items() if len(paths) > 1} == {}


def test_a_function_is_called_by_more_than_one_word():
    functions = {name for name, _, is_function in DEFINED if is_function and not name.startswith("__")}
    assert {name for name in functions if not re.search(r"[a-z0-9]_[a-z0-9]", name)} <= FIELD
