"""The help of rlcredit and of every command: four groups, one style, and nothing heavy behind it."""

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from time_commands import RUN_RLCREDIT, time_command

from rlcredit.cli.commands import COMMAND_TABLE, load_parser, render_help
from rlcredit.config.paths import find_config_file

ROOT = Path(__file__).parents[3]


def run_rlcredit(*words, **settings):
    command = [sys.executable, "-m", "rlcredit", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **settings)


def test_the_help_lists_every_command_in_four_groups():
    text = render_help()
    groups = {title: body.split("\n") for title, body in re.findall(r"^(\w+):\n((?:  .*\n)+)", text, re.MULTILINE)}
    listed = [line.split()[0] for lines in groups.values() for line in lines if line]
    assert list(groups) == ["prepare", "train", "compare", "use"]
    assert listed == list(COMMAND_TABLE)
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_rlcredit_alone_shows_the_help_with_status_0(words):
    done = run_rlcredit(*words)
    assert (done.returncode, done.stdout, done.stderr) == (0, render_help() + "\n", "")


@pytest.mark.parametrize("name", COMMAND_TABLE)
def test_the_help_of_a_command_has_the_style_of_all(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    parser = load_parser(name)
    usage, sentence, examples, *sections = re.split(r"\n\n", parser.format_help().rstrip("\n"))
    assert usage.startswith(f"usage: rlcredit {name} [options]")
    assert re.fullmatch(r"[A-Z][^\n]*\.", sentence)
    assert sections
    assert all(re.match(r"[\w'(][^\n]*:\n  ", each) for each in sections)
    for example in examples.split("\n"):
        program, command, *words = shlex.split(example)
        assert (program, command) == ("rlcredit", name)
        shipped = [word for word in words if word.startswith("configs/")]
        assert all(Path(find_config_file(word)).is_file() for word in shipped), example
        flags = [word for word in words if word.startswith("--")]
        assert flags == [flag for flag in flags if flag in parser._option_string_actions], example
    lines = parser.format_help().splitlines()
    assert max(map(len, lines)) <= 110
    assert not any(line != line.rstrip() for line in lines)


@pytest.mark.parametrize("name", COMMAND_TABLE)
def test_every_option_says_what_it_is(name):
    for action in load_parser(name)._actions:
        if action.help == argparse.SUPPRESS:
            continue
        assert action.help, action.dest
        assert not re.match(r"[A-Z](?!\w*[A-Z])[a-z]", action.help), action.help
        assert not action.help.endswith(".") or action.help.endswith(".."), action.help
        assert "absent" not in action.help


def test_one_thing_has_one_flag_in_every_command():
    flags = {name: set(load_parser(name)._option_string_actions) for name in COMMAND_TABLE}
    every = set().union(*flags.values())
    assert every.isdisjoint({"--ckpt", "--run", "--checkpoint_path", "-n", "--n", "--folder", "--tracking_uri"})
    assert {name for name, own in flags.items() if "--ckpt_path" in own} == {
        *("fit", "validate", "try", "sample", "export", "evaluate")
    }
    assert {name for name, own in flags.items() if "--out" in own} >= {"fit", "campaign", "card", "report", "evaluate"}
    assert {name for name, own in flags.items() if "--mlflow" in own} >= {"fit", "card", "evaluate", "deliver"}
    assert {name for name, own in flags.items() if "--completions" in own} == {"try", "sample", "evaluate"}


@pytest.mark.parametrize("words", [("--help",), *((name, "--help") for name in COMMAND_TABLE)])
def test_help_takes_a_fraction_of_a_second(words):
    """A fifth to a third of one; a slow machine takes longer, and an import of torch ten times as long."""
    assert run_rlcredit(*words).returncode == 0
    assert min(time_command([*RUN_RLCREDIT, *words])[0] for _ in range(3)) < 0.8  # other processes may be busy


@pytest.mark.slow
def test_a_reader_that_closes_its_end_ends_a_command_quietly():
    code = f"{shlex.quote(sys.executable)} -m rlcredit list | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[1:] == ["0"]
    assert done.stderr == ""


@pytest.mark.parametrize("words", [("--help",), ("fit", "--help"), ("--version",), ("--completion", "words", "")])
def test_what_nobody_reads_is_no_error(words):
    ours, theirs = os.pipe()
    os.close(ours)
    process = subprocess.Popen(
        [sys.executable, "-m", "rlcredit", *words], cwd=ROOT, stdout=theirs, stderr=subprocess.PIPE
    )
    os.close(theirs)
    assert process.communicate()[1] == b""
    assert process.returncode == 0


def test_a_start_without_a_configuration_is_refused_before_the_stack_is_imported():
    began = time.monotonic()
    done = run_rlcredit("fit")
    assert done.returncode == 2
    assert done.stderr == "error: no configuration is named. Say which one, as `--config configs/tiny.yaml`.\n"
    assert time.monotonic() - began < 30
