"""What ``import rlcredit`` gives, and what it does not import."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rlcredit
import rlcredit.formulas

ROOT = Path(__file__).parents[2]

IMPORTS = """
import sys, time


def spend(statement):
    begun = time.process_time()
    exec(statement)
    heavy = {"torch", "lightning", "transformers", "peft", "mlflow", "pandas", "scipy", "matplotlib", "callbacks"}
    print(sorted(heavy & sys.modules.keys()), round(time.process_time() - begun, 3), sep=";")


spend("import rlcredit")
spend("import rlcredit.formulas")
spend("from rlcredit import read_run")
spend("import torch")
spend("from rlcredit.formulas import masked_mean, phrase_plan_mask, scores_from_hidden")
spend("from rlcredit import Rollout")
"""


def type_checking_imports(package):
    """Return the module of each name that a package shows to a type checker."""
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    shown = next(node for node in tree.body if isinstance(node, ast.If) and node.test.id == "TYPE_CHECKING")
    return {alias.name: line.module for line in shown.body for alias in line.names}


def test_every_public_name_is_what_a_type_checker_is_shown():
    assert type_checking_imports(rlcredit) == rlcredit._MODULES
    assert set(rlcredit.__all__) == rlcredit._MODULES.keys() <= set(dir(rlcredit))
    for name in rlcredit.__all__:
        found = getattr(rlcredit, name)
        assert (found.__module__, found.__name__) == (rlcredit._MODULES[name], name)


def test_the_reference_begins_with_the_names_that_people_import():
    page = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    shown = [path.rpartition(".") for path in re.findall(r"^   ~(\S+)$", page, re.MULTILINE)]
    assert {f"{module}.{name}" for name, module in rlcredit._MODULES.items()} <= {"".join(each) for each in shown}
    assert len(shown) == 33
    for module, _, name in shown:
        assert getattr(importlib.import_module(module), name).__module__ == module


def test_every_formula_is_imported_from_its_package():
    modules = {name: importlib.import_module(f"rlcredit.formulas.{name}") for name in rlcredit.formulas._MODULES}
    defined = {
        name: module.__name__
        for module in modules.values()
        for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", None) == module.__name__
    }
    assert type_checking_imports(rlcredit.formulas) == defined
    assert set(rlcredit.formulas.__all__) == defined.keys() <= set(dir(rlcredit.formulas))
    for name, module in defined.items():
        assert getattr(rlcredit.formulas, name) is getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("package", [rlcredit, rlcredit.formulas, importlib.import_module("rlcredit.record")])
def test_a_name_that_is_not_public_is_no_attribute(package):
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Rolout'"):
        _ = package.Rolout


def test_a_package_costs_what_is_used_of_it():
    done = subprocess.run([sys.executable, "-c", IMPORTS], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.split(";") for line in done.stdout.splitlines()]
    imported, seconds = [line[0] for line in lines], [float(line[1]) for line in lines]
    assert imported == ["[]", "[]", "[]", "['torch']", "['torch']", "['torch']"]
    package, formulas, reading, _, functions, rollout = seconds
    assert max(package, formulas) < 0.1
    assert max(reading, functions, rollout) < 0.5
