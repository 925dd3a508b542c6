"""The project about itself: contracts between its layers, style, and the README's commands."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


PYRIGHT = pytest.param(["pyright"], marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "command", [["lint-imports"], ["ruff", "check", "."], ["ruff", "format", "--check", "."], PYRIGHT], ids=" ".join
)
def test_the_tools_are_quiet(command):
    tool = Path(sys.executable).parent / command[0]
    done = subprocess.run([tool, *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_promises_two_commands():
    commands = re.findall(r"^\s*(python -m pip install .*)$", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert commands == [
        "python -m pip install -e . && rlcredit fit --config configs/tiny.yaml",
        'python -m pip install -e ".[dev]" && python -m pytest -n auto --dist worksteal',
    ]


def code_lines(path):
    """Count lines that are neither empty nor documentation."""
    text = path.read_text(encoding="utf-8")
    strings = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    documented = {
        line
        for node in strings
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    return sum(bool(line.strip()) and number not in documented for number, line in enumerate(text.splitlines(), 1))


def test_an_operator_is_at_most_50_lines_of_code_and_a_probe_100():
    sizes = {path: code_lines(path) for path in ROOT.glob("callbacks/*/*.py")}
    operators = {path: size for path, size in sizes.items() if path.parent.name != "probes"}
    assert len(operators) > 40
    assert {path.name: size for path, size in operators.items() if size > 50} == {}
    assert {path.name: size for path, size in sizes.items() if size > 100} == {}
