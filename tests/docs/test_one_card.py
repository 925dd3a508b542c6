"""The commands of the page about one card are configurations that fit there."""

import contextlib
import re
import shlex
import sys

import pytest

from rlcredit.cli.application import run_lightning_command
from rlcredit.preflight import memory
from tests.docs.examples import ROOT

PAGE = (ROOT / "docs" / "howto" / "one_card.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^ {4}\S*rlcredit fit (.+)$", PAGE, re.MULTILINE)


def test_the_page_has_at_most_500_words_and_its_commands_are_read():
    assert len(PAGE.split()) <= 500
    assert len(COMMANDS) == PAGE.count("rlcredit fit") == 10


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    room = 79 * 2**30, "the NVIDIA H100 80GB HBM3"
    monkeypatch.setattr(memory, "find_memory_share", lambda device, processes: room)


@pytest.mark.parametrize("command", [command for command in COMMANDS if "vllm_in_process" not in command])
def test_a_command_explains_itself_on_the_card(command, capsys):
    run_lightning_command(["explain", *shlex.split(command)])
    lines = capsys.readouterr().out.splitlines()
    times = [line for line in lines if line.startswith("time") and "on one NVIDIA H100 80GB HBM3" in line]
    assert len(times) == (0 if "4bit" in command else 1)


def test_the_command_with_vllm_in_the_process_is_refused_for_the_lack_of_vllm_alone(capsys):
    pytest.importorskip("rlcredit.decoding.vllm_in_process")
    (command,) = [command for command in COMMANDS if "vllm_in_process" in command]
    with contextlib.suppress(SystemExit):
        run_lightning_command(["explain", *shlex.split(command)])
    error = capsys.readouterr().err
    assert not error or "needs vLLM" in error
