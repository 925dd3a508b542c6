"""The commands of the page about one card are configurations that fit there."""

import re
import shlex
import sys

import pytest

from rlcredit.cli.application import run_lightning_command
from rlcredit.preflight import memory
from tests.docs.examples import ROOT

PAGE = (ROOT / "docs" / "howto" / "one_card.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^ {4}rlcredit fit (.+)$", PAGE, re.MULTILINE)


def test_the_page_has_at_most_500_words_and_its_commands_are_read():
    assert len(PAGE.split()) <= 500
    assert len(COMMANDS) == PAGE.count("rlcredit fit") == 10


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_explains_itself_on_the_card(command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rlcredit"])
    monkeypatch.setattr(
        memory, "find_memory_share", lambda device, processes: (79 * 2**30, "the NVIDIA H100 80GB HBM3")
    )
    run_lightning_command(["explain", *shlex.split(command)])
    lines = capsys.readouterr().out.splitlines()
    times = [line for line in lines if line.startswith("time") and "on one NVIDIA H100 80GB HBM3" in line]
    assert len(times) == (0 if "4bit" in command else 1)
