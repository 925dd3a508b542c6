"""Private names of jsonargparse and Lightning stand in one file each."""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = [path for folder in ("rlcredit", "callbacks", "scripts") for path in sorted((ROOT / folder).rglob("*.py"))]
PATCHES = {"rlcredit/base/lightning_private.py", "rlcredit/config/jsonargparse_patches.py"}
OTHERS = {
    "_actions": "of argparse, which jsonargparse is derived from",
    "_id": "of a run in MLflow",
    "_metrics": "of TRL's trainer",
    "_name": "of an adapter on a server",
    "_option_string_actions": "of argparse, which jsonargparse is derived from",
    "_run_name": "of our own command line",
    "_save_checkpoint": "of TRL's trainer",
    "_step": "of our own session",
    "_version": "of a tensor, and of an adapter on a server",
}
"""Names that are private in the libraries by chance."""


def walk_nodes(path):
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def find_private_names(library):
    """Return the private classes, methods and attributes that a library defines."""
    files = Path(find_spec(library).origin).parent.rglob("*.py")
    classes = [node for path in files for node in walk_nodes(path) if isinstance(node, ast.ClassDef)]
    inner = [node for cls in classes for node in ast.walk(cls)]
    names = {node.name for node in inner if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    names |= {node.attr for node in inner if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


@pytest.mark.slow
def test_private_names_of_two_libraries_are_used_in_two_files():
    libraries = ("jsonargparse", "lightning.pytorch", "lightning.fabric")
    private = {name for library in libraries for name in find_private_names(library)}
    assert OTHERS.keys() < private
    found = set()
    for path in CODE:
        for node in walk_nodes(path):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "name", None)
            origin = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            aliases = node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            modules = [origin + alias.name for alias in aliases]
            hidden = [each for each in modules if each.startswith(("jsonargparse.", "lightning.")) and "._" in each]
            if hidden or name in private - OTHERS.keys():
                found.add(path.relative_to(ROOT).as_posix())
    assert found == PATCHES
