"""What a shell suggests after a key."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rlcredit.cli.completion import run_completion, suggest_words
from rlcredit.config.paths import find_config_file
from rlcredit.credit.catalogue import find_operator_classes

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        (["ca"], ["campaign", "card"]),
        (["--c"], ["--completion"]),
        (["--completion", ""], ["bash", "zsh", "fish"]),
        (["fit", "--ckpt_path", "a"], ["auto"]),
        (["fit", "--ckpt_path", "l"], ["last"]),
        (["fit", "--mlflow", "no"], ["none"]),
        (["export", "--dtype", "float"], ["float32", "float16"]),
        (["try", "--colour", ""], ["auto", "always", "never"]),
        (["card", "--organism", "aligned", "dec"], ["decoy"]),
        (["card", "SEPAA"], ["SEPAAmplification"]),
        (["fit", "--model.sampling.c"], ["--model.sampling.completions"]),
        (["fit", "--config", "=", "configs/tin"], ["configs/tiny.yaml"]),
        (["fit", "--config=configs/tin"], ["--config=configs/tiny.yaml"]),
        (["sample", "--question", ""], []),
        (["no_such_command", ""], []),
    ],
)
def test_what_may_follow_is_suggested(words, suggested):
    assert suggest_words(words) == suggested


def test_operators_are_suggested_without_being_imported():
    named = set(suggest_words(["card", ""]))
    assert {cls.__name__ for cls in find_operator_classes() if ".probes." not in cls.__module__} <= named


@pytest.mark.parametrize(
    ("words", "least"), [(["fit", "--config", ""], 6), (["evaluate", "--tasks", ""], 6), (["campaign", ""], 1)]
)
def test_every_suggested_file_is_there(words, least):
    found = suggest_words(words)
    assert len(found) >= least
    assert all(Path(find_config_file(name)).is_file() for name in found)


@pytest.fixture
def ask_shell(tmp_path):
    """Return a function that runs words of a shell, where ``rlcredit`` is this one, or skips without that shell."""
    (tmp_path / "rlcredit").write_text(f'#!/bin/sh\ncd {ROOT}\nexec {sys.executable} -m rlcredit "$@"\n')
    (tmp_path / "rlcredit").chmod(0o755)

    def ask(*words):
        if shutil.which(words[0]) is None:
            pytest.skip(f"{words[0]} is not installed")
        settings = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path, env=settings)
        return done.stdout.splitlines()

    return ask


def test_bash_completes_with_the_script(ask_shell):
    script = """
        source <(rlcredit --completion bash)
        complete -p rlcredit
        COMP_WORDS=(rlcredit card --budget st); COMP_CWORD=3; _rlcredit; echo "${COMPREPLY[@]}"
        COMP_WORDS=(rlcredit fit --config = configs/ti); COMP_CWORD=4; _rlcredit; echo "${COMPREPLY[@]}"
        COMP_WORDS=(rlcredit ""); COMP_CWORD=1; _rlcredit; echo "${COMPREPLY[0]}"
    """
    registered, *shown = ask_shell("bash", "-c", script)
    assert registered == "complete -o default -F _rlcredit rlcredit"
    assert shown == ["standard", "configs/tiny.yaml", "list"]


def test_zsh_completes_with_the_script(ask_shell):
    script = """
        source <(rlcredit --completion zsh)
        echo $_comps[rlcredit]
        compadd() { shift; echo $@ }
        _files() { echo files }
        words=(rlcredit card --budget st); CURRENT=4; _rlcredit
        words=(rlcredit fit --config=configs/ti); CURRENT=3; _rlcredit
        words=(rlcredit "" card); CURRENT=2; _rlcredit
        words=(rlcredit sample --question ""); CURRENT=4; _rlcredit
    """
    registered, *shown, commands, files = ask_shell("zsh", "-fc", script)
    assert registered == "_rlcredit"
    assert shown == ["standard", "--config=configs/tiny.yaml"]
    assert commands.split()[:2] == ["list", "new"]
    assert files == "files"


def test_fish_completes_with_the_script(ask_shell, tmp_path):
    (tmp_path / "table.csv").touch()
    script = """
        rlcredit --completion fish | source
        complete -C "rlcredit card --budget st"
        complete -C "rlcredit fit --config=configs/ti"
        complete -C "rlcredit sa"
        complete -C "rlcredit sample --question tab"
    """
    assert ask_shell("fish", "--no-config", "-c", script) == [
        "standard",
        "--config=configs/tiny.yaml",
        "sample",
        "table.csv",
    ]


def test_another_shell_is_refused(capsys):
    assert run_completion(["ksh"]) == 2
    assert capsys.readouterr().err == "error: --completion: expected bash, zsh or fish, got ksh.\n"
