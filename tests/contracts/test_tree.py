"""Tests are where one looks for them: one file for every operator, probe and loss, and none that names nothing."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"callbacks": "*/", "rlcredit/losses": ""}
"""Where operators and losses are, and how far below."""


def modules(folder):
    return {path.stem: path for path in (ROOT / folder).glob(f"{FOLDERS[folder]}*.py") if path.stem != "__init__"}


def files_of(folder):
    files = (ROOT / "tests" / folder).glob(f"{FOLDERS[folder]}test_*.py")
    return {path.stem.removeprefix("test_"): path for path in files}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_module_has_its_test_and_every_test_its_module(folder):
    assert files_of(folder).keys() == modules(folder).keys()


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_test_is_about_its_module(folder):
    for name, path in modules(folder).items():
        made = re.findall(r"^(?:def|class) ([A-Za-z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        text = files_of(folder)[name].read_text(encoding="utf-8")
        assert any(re.search(rf"\b{each}\b", text) for each in made), name
        assert re.search("^def test_", text, re.MULTILINE), name


def test_operators_are_tested_in_the_room_in_which_they_are():
    rooms = {path.parent.name for path in modules("callbacks").values()}
    for name, path in files_of("callbacks").items():
        assert path.parent.name == modules("callbacks")[name].parent.name or path.parent.name not in rooms


def strings(path):
    """Return the strings of a module that are no documentation."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in documentation)
    return {node.value for node in constants if isinstance(node.value, str)}


def test_only_the_layout_knows_what_the_files_of_a_run_are_called():
    layout = ROOT / "rlcredit" / "run_folder" / "layout.py"
    names = {text for text in strings(layout) if re.fullmatch(r"[\w-]+\.\w+", text)}
    assert {"status.json", "record.jsonl", "config.yaml"} <= names
    code = [path for folder in ("rlcredit", "callbacks", "scripts") for path in (ROOT / folder).rglob("*.py")]
    assert len(code) > 200
    known = {path.relative_to(ROOT).as_posix(): strings(path) & names for path in code if path != layout}
    assert {path: sorted(names) for path, names in known.items() if names} == {}


def test_the_product_knows_no_study():
    rooms = ("rlcredit", "callbacks", "configs", "scripts")
    files = [path for room in rooms for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".yaml", ".md")]
    assert len(files) > 400
    naming = [path for path in files if re.search(r"\bstudies\b", path.read_text(encoding="utf-8"))]
    assert [path.relative_to(ROOT).as_posix() for path in naming] == []
