"""The times that people feel are of commands that do what their names say."""

import subprocess
import sys

import pytest
import time_commands
from time_commands import SOURCE_ROOT, TIMED_COMMANDS, time_command


@pytest.mark.parametrize("name", [name for name in TIMED_COMMANDS if name.startswith("refusal")])
def test_a_refusal_is_one(name):
    done = subprocess.run(TIMED_COMMANDS[name], cwd=SOURCE_ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no such option. " in done.stderr


def test_a_command_takes_the_time_of_its_process():
    processor, clock = time_command([sys.executable, "-c", "import time; time.sleep(0.3)"])
    assert clock > 0.3
    assert processor > 0


def test_a_stranger_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["time_commands", "cards"])
    with pytest.raises(SystemExit):
        time_commands.main()
    assert "cards: no such command; there are refusal of" in capsys.readouterr().err


def test_a_command_that_fails_is_not_timed():
    with pytest.raises(SystemExit, match="ended with 1, not 0:\nbroken"):
        time_command([sys.executable, "-c", "import sys; sys.exit('broken')"])
