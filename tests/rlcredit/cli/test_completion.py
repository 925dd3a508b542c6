"""What a shell suggests after a key."""

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
        (["--completion", ""], ["bash"]),
        (["fit", "--ckpt_path", "a"], ["auto"]),
        (["fit", "--ckpt_path", "l"], ["last"]),
        (["fit", "--mlflow", "no"], ["none"]),
        (["export", "--dtype", "float"], ["float32", "float16"]),
        (["try", "--colour", ""], ["auto", "always", "never"]),
        (["card", "--organism", "aligned", "dec"], ["decoy"]),
        (["card", "SEPAA"], ["SEPAAmplification"]),
        (["fit", "--model.sampling.c"], ["--model.sampling.completions"]),
        (["fit", "--config", "=", "configs/tin"], ["configs/tiny.yaml"]),
        (["sample", "--question", ""], []),
        (["no_such_command", ""], []),
    ],
)
def test_what_may_follow_is_suggested(words, suggested):
    assert suggest_words(words) == suggested


def test_operators_are_suggested_without_being_imported():
    named = set(suggest_words(["card", ""]))
    assert {cls.__name__ for cls in find_operator_classes() if ".probes." not in cls.__module__} <= named


@pytest.mark.parametrize("words", [["fit", "--config", ""], ["evaluate", "--tasks", ""], ["campaign", ""]])
def test_every_suggested_file_is_there(words):
    found = suggest_words(words)
    assert len(found) > 5
    assert all(Path(find_config_file(name)).is_file() for name in found)


def test_bash_completes_with_the_script(tmp_path):
    (tmp_path / "rlcredit").write_text(f'#!/bin/sh\ncd {ROOT}\nexec {sys.executable} -m rlcredit "$@"\n')
    (tmp_path / "rlcredit").chmod(0o755)
    script = """
        PATH=%s:$PATH
        source <(rlcredit --completion bash)
        complete -p rlcredit
        COMP_WORDS=(rlcredit card --budget st); COMP_CWORD=3; _rlcredit; echo "${COMPREPLY[@]}"
        COMP_WORDS=(rlcredit fit --config = configs/ti); COMP_CWORD=4; _rlcredit; echo "${COMPREPLY[@]}"
        COMP_WORDS=(rlcredit ""); COMP_CWORD=1; _rlcredit; echo "${COMPREPLY[0]}"
    """
    done = subprocess.run(["bash", "-c", script % tmp_path], capture_output=True, text=True, check=True)
    registered, *shown = done.stdout.splitlines()
    assert registered == "complete -o default -F _rlcredit rlcredit"
    assert shown == ["standard", "configs/tiny.yaml", "list"]


def test_another_shell_is_refused(capsys):
    assert run_completion(["fish"]) == 2
    assert capsys.readouterr().err.startswith("error: --completion: expected bash.")
