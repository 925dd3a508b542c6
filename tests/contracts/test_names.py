"""Names: no two modules export one, and a function says what it does to what."""

import ast
import re
from collections import defaultdict

from tests.contracts.test_naming import read_trees

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
WORDS_OF_THE_FIELD = {"main", "setup", "surprisal", "sigmoid"}
"""Names of one word that a reader of this field, or a tool, knows."""


def list_definitions():
    """Return the nodes of all functions and classes on the level of modules, with their paths."""
    return [(node, path) for path, tree in read_trees().items() for node in tree.body if isinstance(node, DEFINITIONS)]


def test_no_two_modules_export_one_name():
    places = defaultdict(set)
    for node, path in list_definitions():
        if not node.name.startswith("_") and node.name != "main":  # every script has one
            places[node.name].add(path)
    assert len(places) > 1000
    assert {name: sorted(paths) for name, paths in places.items() if len(paths) > 1} == {}


def test_a_function_is_called_by_more_than_one_word():
    names = {node.name for node, _ in list_definitions() if isinstance(node, ast.FunctionDef)}
    functions = {name for name in names if not name.startswith("__")}
    assert {name for name in functions if not re.search(r"[a-z0-9]_[a-z0-9]", name)} <= WORDS_OF_THE_FIELD
