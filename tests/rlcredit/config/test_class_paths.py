"""Nothing that a configuration names runs because it is named: every place, five payloads, two commands by turns."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonargparse import ArgumentError, ArgumentParser
from lightning.pytorch import Callback

from rlcredit.cli.application import run_lightning_command
from rlcredit.config.class_paths import ClassPathError, import_class_path, patch_jsonargparse, refuse_misplaced_class
from rlcredit.episodes.environment import Environment
from tests.slow_cases import mark_others_slow

TINY = Path(__file__).parents[3] / "configs" / "tiny.yaml"
EVIL = """
import pathlib
class Bare:
    def __init__(self, *args): pathlib.Path("canary").touch()
def made(*args): pathlib.Path("canary").touch()
"""
HUB = 'import pathlib\npathlib.Path("canary").touch()\ndef found(*args): return None\n'
OWN = """
from callbacks import CreditOperator
class Doubled(CreditOperator, reads="advantages", writes="advantages"):
    def assign(self, rollout):
        rollout.advantages = 2 * rollout.advantages
        return {}
"""
PAYLOADS = {
    "os": '{class_path: os.system, init_args: {command: "touch canary"}}',
    "subprocess": '{class_path: subprocess.getoutput, init_args: {cmd: "touch canary"}}',
    "pty": "{class_path: pty.spawn, init_args: {argv: [touch, canary]}}",
    "module": "{class_path: evil.Bare}",
    "hub": "{class_path: torch.hub.load, init_args: {repo_or_dir: ., model: found, source: local}}",
    "call": """'os.system(command="touch canary")'""",
}
PLACES = {
    **{f"trainer.{name}": f"trainer: {{{name}: %s}}" for name in ("logger", "strategy", "plugins", "profiler")},
    **{f"model.{name}": f"model: {{{name}: %s}}" for name in ("loss", "optimizer", "scheduler", "engine", "policy")},
    **{f"model.{name}.": f"model: {{{name}: %s}}" for name in ("sampling", "validation", "dynamic_sampling")},
    "trainer.accelerator": "trainer: {accelerator: %s}",
    "trainer.callbacks": "trainer: {callbacks: [%s]}",
    "nested loss": "model: {loss: {class_path: KLPenalty, init_args: {loss: %s}}}",
    "nested stack": "trainer: {callbacks: [{class_path: CounterfactualProbe, init_args: {stacks: {other: [%s]}}}]}",
    "callable": "trainer: {callbacks: [{class_path: lightning.pytorch.callbacks.LambdaCallback, "
    "init_args: {on_fit_start: %s}}]}",
    "task": "data: %s",
    "free": "data: {init_args: {config: {max_terms: %s}}}",
    "checkpoint": "checkpoint: %s",
    "completions": "completions: %s",
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    monkeypatch.syspath_prepend(tmp_path)
    Path("evil.py").write_text(EVIL)
    Path("hubconf.py").write_text(HUB)


@pytest.mark.parametrize("payloads", mark_others_slow([2, len(PAYLOADS)]))
@pytest.mark.parametrize(("number", "place"), list(enumerate(PLACES)), ids=list(PLACES))
def test_no_place_of_a_configuration_runs_what_it_names(capsys, number, place, payloads):
    # The commands and the payloads take turns, from place to place: each payload meets both commands.
    names = [[*PAYLOADS][(number + shift) % len(PAYLOADS)] for shift in range(payloads)]
    for turn, name in enumerate(names, start=number):
        payload = PAYLOADS[name]
        command = ("explain", "fit")[turn % 2]
        Path("overlay.yaml").write_text(PLACES[place] % payload)
        with pytest.raises(SystemExit) as stop:
            run_lightning_command([command, f"--config={TINY}", "--config=overlay.yaml"])
        said = capsys.readouterr().err
        assert stop.value.code == 2, (name, said)
        assert said.startswith("error: ")
        assert said.count("\n") == 1, said
    assert {path.name for path in Path().iterdir()} - {"__pycache__"} == {"evil.py", "hubconf.py", "overlay.yaml"}


@pytest.mark.parametrize(
    "flags",
    [
        ["--model.optimizer=os.system"],
        ["--model.optimizer.class_path", "os.system", "--model.optimizer.init_args.command", "touch canary"],
        ["--model.scheduler=evil.made"],
        ["--trainer.callbacks+=evil.Bare"],
        ['--model.optimizer={"class_path": "os.system", "init_args": {"command": "touch canary"}}'],
        ["--config=model: {optimizer: {class_path: os.system, init_args: {command: touch canary}}}\n"],
        ["--model.optimizer=optimizer.yaml"],
        ["--model=model.yaml"],
        ["--model.optimizer=torch.os.system"],
        ["--trainer.callbacks+=evil.inner.Bare"],
        ["--trainer.callbacks+=evil.Bare.inner"],
        ["--trainer.callbacks+=antigravity.Antigravity"],
    ],
    ids=" ".join,
)
def test_however_it_is_written(capsys, flags):
    Path("optimizer.yaml").write_text(PAYLOADS["os"])
    Path("model.yaml").write_text(f"optimizer: {PAYLOADS['os']}")
    with pytest.raises(SystemExit) as stop:
        run_lightning_command(["explain", f"--config={TINY}", *flags])
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not Path("canary").exists()
    assert "antigravity" not in sys.modules


def test_operators_beside_the_configuration_are_found(capsys):
    Path("own.py").write_text(OWN)
    Path("ours").mkdir()
    Path("ours/__init__.py").write_text("from own import *\nfrom .deep import Halved\n")
    Path("ours/deep.py").write_text("import own\nclass Halved(own.Doubled): ...\n")
    Path("overlay.yaml").write_text("trainer: {callbacks: [GRPO, own.Doubled, ours.Halved]}")
    run_lightning_command(["explain", f"--config={TINY}", "--config=overlay.yaml"])
    assert "   1  Doubled" in (said := capsys.readouterr().out)
    assert "   2  Halved" in said


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("os.path.join", "is Python's own"),
        ("evil.Bare", "is no `Callback`, and no function that says it returns one"),
        ("evil.made", "is no `Callback`, and no function that says it returns one"),
        ("evil.Missing", "cannot be imported: the module evil has no `Missing`, only "),
        ("evil.Bare.method", "cannot be imported: there is no module `evil.Bare`"),
    ],
)
def test_a_refusal_says_why(path, reason):
    with pytest.raises(ValueError, match=rf"^trainer\.callbacks\[0\]: `{path}` {reason}"):
        refuse_misplaced_class([path], list[Callback], "trainer.callbacks")
    assert not Path("canary").exists()


def test_a_class_that_lacks_a_method_is_refused_by_its_name():
    Path("half.py").write_text("from rlcredit import Environment\nclass Half(Environment):\n    def step(self): ...\n")
    with pytest.raises(ValueError, match=r"^environment: the class `half.Half` lacks `reset`\."):
        refuse_misplaced_class("half.Half", Environment, "environment")


def test_a_parser_imports_nothing_of_python_by_itself():
    patch_jsonargparse()
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--named", type=Callable)
    with pytest.raises(ArgumentError, match=r"Importing 'os\.getcwd' is not allowed"):
        parser.parse_object({"named": "os.getcwd"})


WRONG = {
    "raises": ("X = None.split()\n", "cannot be imported: AttributeError: 'NoneType' object has no attribute 'split'"),
    "lacks": ("import not_there\n", "cannot be imported: ModuleNotFoundError: No module named 'not_there'"),
    "odd": ("class Odd(Exception): ...\nraise Odd('really')\n", "cannot be imported: Odd: really"),
    "leaves": ("import sys\nsys.exit(3)\n", "cannot be imported: SystemExit: 3"),
    "broken": ("class A(:\n", "cannot be imported: SyntaxError: invalid syntax (broken.py, line 1)."),
    "turning": ("from turning import A\n", "cannot be imported: ImportError: cannot import name 'A' from partially"),
    "header": (OWN.replace('"advantages", w', '"advantage", w'), "cannot be imported: TypeError: Doubled declares"),
}
"""Modules that cannot be imported, by their names: their source, and what is said of them."""


@pytest.mark.parametrize("name", WRONG)
def test_a_module_that_cannot_be_imported_is_told_with_its_exception_and_line(capsys, name):
    source, message = WRONG[name]
    Path(f"{name}.py").write_text(source + "from callbacks import CreditOperator\nclass A(CreditOperator): ...\n")
    with pytest.raises(SystemExit) as stop:
        run_lightning_command(["explain", f"--config={TINY}", f"--trainer.callbacks=[GRPO, {name}.A]"])
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert said.startswith(f"error: trainer.callbacks[1]: `{name}.A` {message}")
    assert f"({name}.py, line " in said
    assert "rlcredit list" not in said


def test_a_misspelt_class_is_looked_for_in_its_module_and_a_missing_module_is_named(capsys):
    Path("whole.py").write_text(OWN.replace('reads="advantages"', 'reads=("advantages",)'))
    run_lightning_command(["explain", f"--config={TINY}", "--trainer.callbacks=[GRPO, whole.Doubled]"])
    for path, message in {
        "whole.Double": "cannot be imported: the module whole has no `Double`, only Doubled (",
        "nowhere.Double": "cannot be imported: there is no module `nowhere`, in the working directory or installed.",
    }.items():
        with pytest.raises(SystemExit):
            run_lightning_command(["explain", f"--config={TINY}", f"--trainer.callbacks=[GRPO, {path}]"])
        assert f"error: trainer.callbacks[1]: `{path}` {message}" in capsys.readouterr().err


def test_a_constructor_that_raises_is_told_with_its_line(capsys):
    Path("making.py").write_text(OWN + "    def __init__(self) -> None:\n        self.x = None.split()\n")
    with pytest.raises(SystemExit):
        run_lightning_command(["explain", f"--config={TINY}", "--trainer.callbacks=[GRPO, making.Doubled]"])
    assert (
        "`making.Doubled` raises AttributeError: 'NoneType' object has no attribute 'split' (making.py, line 8)."
        in (capsys.readouterr().err)
    )


def test_an_operator_that_fails_is_found_before_anything_is_loaded(capsys):
    Path("failing.py").write_text(OWN.replace("2 * rollout.advantages", "rollout.advantages.nothing()"))
    with pytest.raises(SystemExit):
        run_lightning_command(["explain", f"--config={TINY}", "--trainer.callbacks=[GRPO, failing.Doubled]"])
    assert capsys.readouterr().err == (
        "error: Doubled fails on made-up completions: AttributeError: 'Tensor' object has no attribute 'nothing' "
        "(failing.py, line 5).\n"
    )


def test_a_folder_called_callbacks_is_named_as_the_one_in_the_way(capsys):
    Path("callbacks").mkdir()
    Path("callbacks/mine.py").write_text(OWN)
    with pytest.raises(SystemExit):
        run_lightning_command(["explain", f"--config={TINY}", "--trainer.callbacks=[GRPO, callbacks.mine.Doubled]"])
    assert f"Rename {Path.cwd() / 'callbacks'}." in capsys.readouterr().err


@pytest.mark.parametrize("path", ["", ".", "..", ".x", " .", "/"])
def test_a_text_that_is_no_path_is_refused_whoever_else_looks_for_modules(path):
    with pytest.raises(ClassPathError, match="cannot be imported: there is no module"):
        import_class_path(path)
