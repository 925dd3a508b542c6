"""Configurations are found where they are, and what they name beside them."""

import sys
from pathlib import Path

import pytest

from rlcredit.cli.application import run_lightning_command
from rlcredit.config import paths as module
from rlcredit.config.paths import (
    PACKAGE_FOLDER,
    _CallbacksFinder,
    extend_import_path,
    find_config_file,
    find_configs_folder,
    resolve_config_flags,
)

OPERATOR = """
from rlcredit.credit.operator import CreditOperator


class {name}(CreditOperator, reads="advantages", writes="advantages"):
    def assign(self, rollout):
        rollout.advantages = rollout.advantages * {factor}
        return {{}}
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.parametrize("name", ["tiny.yaml", "configs/tiny.yaml", "conditions/sepa_paper/c1_grpo.yaml"])
def test_a_configuration_that_comes_with_rlcredit_is_found_from_anywhere(name):
    assert Path(find_config_file(name)).is_file()
    assert resolve_config_flags(["fit", f"--config={name}", "-c", name]) == [
        "fit",
        f"--config={find_config_file(name)}",
        "-c",
        find_config_file(name),
    ]


def test_a_file_of_the_working_directory_comes_first(tmp_path):
    (tmp_path / "tiny.yaml").write_text("condition: mine")
    assert find_config_file("tiny.yaml") == "tiny.yaml"
    assert find_config_file("configs/tiny.yaml") == str(find_configs_folder() / "tiny.yaml")


@pytest.mark.parametrize("name", ["nowhere.yaml", "../configs/tiny.yaml", "/tiny.yaml", "{a: 1}", "x" * 300, "a\0b"])
def test_anything_else_comes_back_as_it_is(name):
    assert find_config_file(name) == name


def test_an_installed_package_has_its_own_configurations(tmp_path, monkeypatch):
    (tmp_path / "package" / "configs").mkdir(parents=True)
    monkeypatch.setattr(module, "PACKAGE_FOLDER", tmp_path / "package")
    assert find_configs_folder() == tmp_path / "package" / "configs"


def test_an_operator_is_found_beside_the_configuration_that_names_it(tmp_path, capsys):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "beside_operators.py").write_text(OPERATOR.format(name="Halved", factor=0.5))
    (tmp_path / "study" / "mine.yaml").write_text("trainer: {callbacks: [GRPO, beside_operators.Halved]}")
    run_lightning_command(["explain", "--config=tiny.yaml", "--config=study/mine.yaml"])
    assert "   1  Halved  " in capsys.readouterr().out


def test_folders_beside_configurations_come_last_and_only_those_that_are_named(tmp_path):
    (tmp_path / "study" / "inner").mkdir(parents=True)
    (tmp_path / "study" / "mine.yaml").write_text("{}")
    (tmp_path / "study" / "inner" / "other.yaml").write_text("{}")
    before = list(sys.path)
    extend_import_path(["fit", "--config", "study/mine.yaml", "--trainer.max_steps=3"])
    assert sys.path == [*before, str(tmp_path), str(tmp_path / "study")]
    extend_import_path(["fit", "--config=study/mine.yaml"])
    assert sys.path == [*before, str(tmp_path), str(tmp_path / "study")]


def test_callbacks_are_ours_whatever_the_working_directory_holds():
    spec = _CallbacksFinder.find_spec("callbacks")
    assert spec is not None
    assert spec.origin == str(PACKAGE_FOLDER.parent / "callbacks" / "__init__.py")
    assert _CallbacksFinder.find_spec("rlcredit.credit.operator") is None
