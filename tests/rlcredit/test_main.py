"""The command line before anything heavy is imported."""

import sys

import pytest

from rlcredit.__main__ import COMMANDS, LIGHTNING, main
from rlcredit.command_line.overview import SUBCOMMANDS


@pytest.mark.parametrize(
    ("name", "meant"),
    [("evalute", "Did you mean `evaluate`? There are campaign, card, "), ("version", "There are campaign, card, ")],
)
def test_a_command_that_there_is_not_is_refused_with_those_that_there_are(name, meant, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rlcredit", name, "--config", "x.yaml"])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert said.startswith(f"error: there is no command `{name}`. {meant}")
    assert all(f"{command}, " in said or f"{command}.\n" in said for command in (*COMMANDS, *LIGHTNING))


def test_every_subcommand_of_lightning_is_known():
    assert set(LIGHTNING) == set(SUBCOMMANDS)
