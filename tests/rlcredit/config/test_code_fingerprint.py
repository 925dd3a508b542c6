"""Code that a configuration names, and what it says."""

import importlib
import sys

import pytest

from rlcredit.config.code_fingerprint import (
    find_dotted_paths,
    fingerprint_modules,
    trace_imported_modules,
    trace_user_modules,
)

OPERATOR = """
from torch import Tensor
from . import constants
from callbacks import CreditOperator
"""
CONSTANTS = '''"""Numbers."""


def factor():
    """Return it."""
    import own_numbers
    return 1


SECOND = 2
"""Of an attribute."""
'''
FILES = {
    "own_parts/__init__.py": "FIRST = 1\n",
    "own_parts/operator.py": OPERATOR,
    "own_parts/constants.py": CONSTANTS,
    "own_numbers.py": "import json\n",
    "own_unread.py": "raise RuntimeError\n",
}
PATH = "own_parts.operator.Scaled"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return tmp_path


def test_modules_of_ones_own_are_followed_and_none_is_imported(folder):
    found = trace_user_modules([PATH])
    assert found == {
        name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): folder / name
        for name in FILES
        if name != "own_unread.py"
    }
    assert not {*found} & {*sys.modules}


def test_what_comes_with_rlcredit_counts_and_what_others_have_made_does_not(folder):
    found = trace_imported_modules([PATH])
    assert {"rlcredit.credit.operator", "rlcredit.credit.rollout", "rlcredit.credit.stack_checks"} <= {*found}
    assert not [name for name in found if name.partition(".")[0] in ("torch", "lightning", "json")]


def test_what_a_package_of_ours_gives_lazily_counts_where_it_is_used(folder):
    (folder / "own_lazily.py").write_text("from rlcredit import Rollout\nfrom rlcredit.formulas import masked_mean\n")
    found = trace_imported_modules(["own_lazily"])
    assert {"rlcredit", "rlcredit.credit.rollout", "rlcredit.formulas.masked"} <= {*found}
    assert not {"rlcredit.formulas.spans", "rlcredit.credit.stack", "rlcredit.training.module"} & {*found}


def test_packages_above_a_folder_without_one_are_found(folder):
    (folder / "own_outer" / "plain").mkdir(parents=True)
    (folder / "own_outer" / "__init__.py").write_text("")
    (folder / "own_outer" / "plain" / "inner.py").write_text("")
    assert [*trace_user_modules(["own_outer.plain.inner.Name"])] == ["own_outer", "own_outer.plain.inner"]


def test_code_that_reaches_too_far_or_is_gone_is_no_error(folder, monkeypatch):
    reaching = (
        "from ... import nothing\nfrom . import beside\nfrom .beside import one\nfrom transformers import Trainer\n"
    )
    (folder / "own_far.py").write_text(reaching)
    monkeypatch.setitem(sys.modules, "own_absent", None)
    assert [*trace_user_modules(["own_far.Name", "own_absent.Name"])] == ["own_far"]
    assert fingerprint_modules({"own_far": folder / "own_gone.py"}) != fingerprint_modules(
        {"own_far": folder / "own_parts" / "operator.py"}
    )


def test_installed_packages_are_not_entered(folder):
    before = {*sys.modules}
    (folder / "own_lazy.py").write_text("def later():\n    from transformers import Trainer, LlamaModel\n")
    trace_imported_modules(["own_lazy.later"])
    assert {*sys.modules} == before


@pytest.mark.parametrize("path", ["no_such_module.Name", "os.path.join", "torch.optim.AdamW", "own_parts.nothing"])
def test_a_path_that_leads_nowhere_or_elsewhere_adds_nothing(folder, path):
    assert not {*trace_user_modules([path])} - {"own_parts"}


@pytest.mark.parametrize(
    ("name", "old", "new", "same"),
    [
        ("own_parts/constants.py", "Numbers", "Other words", True),
        ("own_parts/constants.py", '"""Return it."""', "# a comment", True),
        ("own_parts/constants.py", '"""Of an attribute."""', '"""Of another."""', True),
        ("own_parts/__init__.py", "FIRST = 1", "FIRST = 2", False),
        ("own_unread.py", "raise", "pass #", True),
        ("own_parts/constants.py", "return 1", "return 2", False),
        ("own_numbers.py", "json", "csv", False),
    ],
)
def test_only_what_code_does_counts(folder, name, old, new, same):
    before = fingerprint_modules(trace_imported_modules([PATH]))
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    assert (fingerprint_modules(trace_imported_modules([PATH])) == before) is same


def test_dotted_paths_are_found_wherever_they_stand():
    content = {
        "data": {"verifier": "mine.judge", "path": "sums.v2.csv", "tolerance": 0.5},
        "callbacks": ["GRPO", "a.B"],
    }
    assert [*find_dotted_paths(content)] == ["mine.judge", "sums.v2.csv", "a.B"]
