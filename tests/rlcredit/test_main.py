"""The command line before anything heavy is imported."""

import importlib
import signal
import sys

import pytest

from rlcredit.__main__ import main
from rlcredit.base.interrupts import ENDING_SIGNALS, SignalInterrupt
from rlcredit.cli.commands import COMMAND_TABLE


@pytest.fixture(autouse=True)
def handlers():
    """The handlers of the tests' process, which ``main`` leaves ignoring signals, as if the process ended with it."""
    before = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("evalute", "command `evalute`. Did you mean `evaluate`? "),
        ("fti", "command `fti`. Did you mean `fit`? "),
        ("frobnicate", "command `frobnicate`. "),
        ("--versoin", "option `--versoin`. Did you mean `--version`? "),
    ],
)
def test_a_command_that_there_is_not_is_refused_with_those_that_there_are(name, meant, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rlcredit", name, "--config", "x.yaml"])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert said == f"error: there is no {meant}`rlcredit --help` lists the commands.\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "--config", "configs/tiny.yaml", "--budget", "quick"], "--budget: an option of `card`, not of `fit`."),
        (["validate", "--config=configs/tiny.yaml", "--replace"], "--replace: an option of `fit`, not of `validate`."),
        (["report", "x", "--budget=quick"], "--budget: an option of `card`, not of `report`."),
        (["sample", "--budget", "quick"], "--budget: an option of `card`, not of `sample`."),
        (["campaign", "--config", "x.yaml"], "--config: no such option. Name the file or folder alone,"),
    ],
)
def test_an_option_of_another_command_is_refused_with_that_command(words, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rlcredit", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")


def test_every_subcommand_of_lightning_is_known():
    from rlcredit.cli.application import CreditCLI

    assert {name for name, command in COMMAND_TABLE.items() if not command.runs} == set(CreditCLI.subcommands())


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("name", [name for name, command in COMMAND_TABLE.items() if command.runs])
def test_a_signal_ends_every_command_with_a_line_and_its_status(name, number, status, handlers, monkeypatch, capsys):
    left = []

    def work(args):
        try:
            signal.raise_signal(number)
        finally:
            left.append("taken back")

    monkeypatch.setattr(sys, "argv", ["rlcredit", name])
    monkeypatch.setattr("rlcredit.__main__._refuse_options", lambda *_: None)  # some options must be said
    module, function = COMMAND_TABLE[name].runs.split(":")
    monkeypatch.setattr(importlib.import_module(module), function, work)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == status
    assert capsys.readouterr().err == f"\ninterrupted by {number.name}.\n"
    assert left == ["taken back"]
    assert {signal.getsignal(each) for each in handlers} == {signal.SIG_IGN}  # nothing disturbs the end


def test_a_signal_that_reaches_main_from_a_run_ends_it_likewise(handlers, monkeypatch, capsys):
    def work(args):
        raise SignalInterrupt(signal.SIGUSR1)

    monkeypatch.setattr(sys, "argv", ["rlcredit", "card"])
    monkeypatch.setattr(importlib.import_module("rlcredit.cards.card_command"), "run_card_command", work)
    with pytest.raises(SystemExit) as stop:
        main()
    assert (stop.value.code, capsys.readouterr().err) == (138, "\ninterrupted by SIGUSR1.\n")


def test_an_error_about_a_hostile_name_shows_it(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rlcredit", "fi\x1b[2Jt\u202e"])
    with pytest.raises(SystemExit):
        main()
    assert r"there is no command `fi\x1b[2Jt\u202e`" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "command"), [("train", "fit"), ("fti", "fit"), ("evalaute", "evaluate")])
def test_a_command_that_is_called_otherwise_is_named(name, command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rlcredit", name])
    with pytest.raises(SystemExit):
        main()
    assert f"there is no command `{name}`. Did you mean `{command}`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("sys.exit()", "SystemExit (ending.py, line 3)"),
        ("sys.exit(0)", "SystemExit: 0 (ending.py, line 3)"),
        ("os._exit(0)", "SystemExit: os._exit(0) (ending.py, line 3)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (ending.py, line 3)"),
    ],
)
def test_a_file_of_ones_own_that_ends_the_process_is_an_error_with_its_line(
    ends, said, handlers, tmp_path, monkeypatch, capsys
):
    (tmp_path / "ending.py").write_text(f"import os, sys\ndef end(words):\n    {ends}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rlcredit", "list"])
    monkeypatch.setattr(importlib.import_module("rlcredit.cli.listing"), "run_list_command", _run_ending)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert capsys.readouterr().err == f"error: {said} ends the process. Raise an error there, or return.\n"


def _run_ending(words):
    sys.modules.pop("ending", None)
    return importlib.import_module("ending").end(words)
